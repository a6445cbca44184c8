CREATE TABLE account (name VARCHAR(20) PRIMARY KEY, id INT NOT NULL UNIQUE);
CREATE TABLE savings (id INT PRIMARY KEY, bal INT NOT NULL);
CREATE TABLE checking (id INT PRIMARY KEY, bal INT NOT NULL);
-- transaction: read_account(name TEXT, i INT)
SELECT name, id FROM account WHERE name = :name;
SELECT id, bal FROM savings WHERE id = :i;
SELECT id, bal FROM checking WHERE id = :i;
-- transaction: update_checking(name TEXT, v INT, i INT)
SELECT name, id FROM account WHERE name = :name;
UPDATE checking SET bal = bal + :v WHERE id = :i;
-- transaction: update_savings(name TEXT, i INT, v INT)
SELECT name, id FROM account WHERE name = :name;
SELECT id, bal FROM savings WHERE id = :i FOR UPDATE;
UPDATE savings SET bal = :v WHERE id = :i;
-- transaction: update_checking_2(name TEXT, i INT, v INT)
SELECT name, id FROM account WHERE name = :name;
SELECT id, bal FROM savings WHERE id = :i;
SELECT id, bal FROM checking WHERE id = :i;
UPDATE checking SET bal = :v WHERE id = :i;
-- invariant: nonneg
NOT EXISTS (SELECT 1 FROM savings WHERE bal < 0);
