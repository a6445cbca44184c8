-- transaction: Balance(n)
SELECT custid INTO c FROM account WHERE name = :n;
SELECT bal INTO a FROM savings WHERE custid = :c;
SELECT bal INTO b FROM checking WHERE custid = :c;

-- transaction: DepositChecking(n, v)
SELECT custid INTO c FROM account WHERE name = :n;
UPDATE checking SET bal = bal + :v WHERE custid = :c;

-- transaction: TransactSavings(n, v)
SELECT custid INTO c FROM account WHERE name = :n;
UPDATE savings SET bal = bal + :v WHERE custid = :c;

-- transaction: Amalgamate(n1, n2)
SELECT custid INTO c1 FROM account WHERE name = :n1;
SELECT custid INTO c2 FROM account WHERE name = :n2;
SELECT bal INTO a FROM savings WHERE custid = :c1;
SELECT bal INTO b FROM checking WHERE custid = :c1;
UPDATE savings SET bal = 0 WHERE custid = :c1;
UPDATE checking SET bal = 0 WHERE custid = :c1;
UPDATE checking SET bal = bal + :a + :b WHERE custid = :c2;

-- transaction: WriteCheck(n, v)
SELECT custid INTO c FROM account WHERE name = :n;
SELECT bal INTO a FROM savings WHERE custid = :c;
SELECT bal INTO b FROM checking WHERE custid = :c;
IF :a + :b < :v THEN
  UPDATE checking SET bal = bal - (:v + 1) WHERE custid = :c;
ELSE
  UPDATE checking SET bal = bal - :v WHERE custid = :c;
END IF;
