CREATE TABLE coupon (code VARCHAR(20) PRIMARY KEY, uses INT NOT NULL, most INT NOT NULL);
CREATE TABLE redemption (code VARCHAR(20) NOT NULL REFERENCES coupon, customer INT NOT NULL, PRIMARY KEY (code, customer));
INSERT INTO coupon VALUES ('a', 0, 3), ('b', 0, 2);

-- transaction: redeem(code VARCHAR(20), customer INT)
SELECT uses, most INTO used, allowed FROM coupon WHERE coupon.code = :code;
IF used >= allowed THEN ROLLBACK; END IF;
INSERT INTO redemption (code, customer) VALUES (:code, :customer);
UPDATE coupon SET uses = uses + 1 WHERE coupon.code = :code;

-- transaction: redeem_guarded(code VARCHAR(20), customer INT)
UPDATE coupon SET uses = uses + 1 WHERE coupon.code = :code AND uses < most;
IF NOT FOUND THEN ROLLBACK; END IF;
INSERT INTO redemption (code, customer) VALUES (:code, :customer);

-- invariant: not_too_often
NOT EXISTS (SELECT 1 FROM coupon WHERE uses > most);
