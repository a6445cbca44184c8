CREATE TABLE account (id BIGSERIAL PRIMARY KEY, owner VARCHAR(100) NOT NULL, balance NUMERIC(12, 2) NOT NULL CHECK (balance >= 0));
CREATE TABLE entry (id BIGSERIAL PRIMARY KEY, account_id BIGINT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  amount NUMERIC(12, 2) NOT NULL, created_at TIMESTAMPTZ NOT NULL DEFAULT now());
CREATE INDEX entry_account ON entry (account_id);
INSERT INTO account VALUES (1, 'a', 5), (2, 'b', 4);

CREATE OR REPLACE PROCEDURE transfer(source BIGINT, target BIGINT, amount NUMERIC(12, 2)) LANGUAGE plpgsql AS $$
DECLARE
  available NUMERIC;
BEGIN
  SELECT a.balance INTO available FROM account a WHERE a.id = source FOR UPDATE;
  IF available < amount THEN
    RAISE EXCEPTION 'only % left', available;
  END IF;
  UPDATE account SET balance = balance - amount WHERE id = source;
  UPDATE account SET balance = balance + amount WHERE id = target;
  INSERT INTO entry (account_id, amount) VALUES (source, -amount), (target, amount);
END;
$$;

-- invariant: nothing_owed
NOT EXISTS (SELECT 1 FROM account WHERE balance < 0);
