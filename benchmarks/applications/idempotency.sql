CREATE TABLE request (key UUID PRIMARY KEY, done BOOLEAN NOT NULL DEFAULT false, created TIMESTAMPTZ DEFAULT now());
CREATE TABLE wallet (id INT PRIMARY KEY, balance INT NOT NULL);

-- transaction: charge(k UUID, w INT, amount INT)
INSERT INTO request (key) VALUES (:k) ON CONFLICT (key) DO NOTHING;
IF NOT FOUND THEN RETURN; END IF;
UPDATE wallet SET balance = balance - :amount WHERE id = :w;
UPDATE request SET done = true WHERE key = :k;

-- transaction: charge_once(k UUID, w INT, amount INT)
IF EXISTS (SELECT 1 FROM request WHERE key = :k) THEN RETURN; END IF;
INSERT INTO request (key, done, created) VALUES (:k, true, now());
UPDATE wallet SET balance = balance - :amount WHERE id = :w;
