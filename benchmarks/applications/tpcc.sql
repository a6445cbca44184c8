CREATE TABLE warehouse (w_id SMALLINT NOT NULL, w_name VARCHAR(10), w_street_1 VARCHAR(20), w_city VARCHAR(20), w_state CHAR(2),
  w_zip CHAR(9), w_tax DECIMAL(4, 2) NOT NULL, w_ytd DECIMAL(12, 2) NOT NULL, PRIMARY KEY (w_id));
CREATE TABLE district (d_id SMALLINT NOT NULL, d_w_id SMALLINT NOT NULL, d_name VARCHAR(10), d_street_1 VARCHAR(20), d_city VARCHAR(20),
  d_state CHAR(2), d_zip CHAR(9), d_tax DECIMAL(4, 2) NOT NULL, d_ytd DECIMAL(12, 2) NOT NULL, d_next_o_id INT NOT NULL,
  PRIMARY KEY (d_w_id, d_id));
CREATE TABLE customer (c_id INT NOT NULL, c_d_id SMALLINT NOT NULL, c_w_id SMALLINT NOT NULL, c_first VARCHAR(16), c_middle CHAR(2),
  c_last VARCHAR(16), c_since TIMESTAMP, c_credit CHAR(2), c_credit_lim DECIMAL(12, 2), c_discount DECIMAL(4, 2) NOT NULL,
  c_balance DECIMAL(12, 2) NOT NULL, c_ytd_payment DECIMAL(12, 2) NOT NULL, c_payment_cnt SMALLINT NOT NULL,
  c_delivery_cnt SMALLINT NOT NULL, c_data TEXT, PRIMARY KEY (c_w_id, c_d_id, c_id));
CREATE TABLE history (h_c_id INT, h_c_d_id SMALLINT, h_c_w_id SMALLINT, h_d_id SMALLINT, h_w_id SMALLINT, h_date TIMESTAMP,
  h_amount DECIMAL(6, 2), h_data VARCHAR(24));
CREATE TABLE orders (o_id INT NOT NULL, o_d_id SMALLINT NOT NULL, o_w_id SMALLINT NOT NULL, o_c_id INT NOT NULL, o_entry_d TIMESTAMP,
  o_carrier_id SMALLINT, o_ol_cnt SMALLINT NOT NULL, o_all_local SMALLINT, PRIMARY KEY (o_w_id, o_d_id, o_id));
CREATE TABLE new_orders (no_o_id INT NOT NULL, no_d_id SMALLINT NOT NULL, no_w_id SMALLINT NOT NULL, PRIMARY KEY (no_w_id, no_d_id, no_o_id));
CREATE TABLE item (i_id INT NOT NULL, i_im_id INT, i_name VARCHAR(24), i_price DECIMAL(5, 2) NOT NULL, i_data VARCHAR(50), PRIMARY KEY (i_id));
CREATE TABLE stock (s_i_id INT NOT NULL, s_w_id SMALLINT NOT NULL, s_quantity SMALLINT NOT NULL, s_dist_01 CHAR(24),
  s_ytd DECIMAL(8, 0) NOT NULL, s_order_cnt SMALLINT NOT NULL, s_remote_cnt SMALLINT NOT NULL, s_data VARCHAR(50), PRIMARY KEY (s_w_id, s_i_id));
CREATE TABLE order_line (ol_o_id INT NOT NULL, ol_d_id SMALLINT NOT NULL, ol_w_id SMALLINT NOT NULL, ol_number SMALLINT NOT NULL,
  ol_i_id INT, ol_supply_w_id SMALLINT, ol_delivery_d TIMESTAMP, ol_quantity SMALLINT, ol_amount DECIMAL(6, 2) NOT NULL,
  ol_dist_info CHAR(24), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number));
CREATE INDEX idx_customer ON customer (c_w_id, c_d_id, c_last, c_first);
ALTER TABLE district ADD CONSTRAINT fkey_district_1 FOREIGN KEY (d_w_id) REFERENCES warehouse (w_id);
ALTER TABLE customer ADD CONSTRAINT fkey_customer_1 FOREIGN KEY (c_w_id, c_d_id) REFERENCES district (d_w_id, d_id);
INSERT INTO warehouse VALUES (1, 'w', 's', 'c', 'st', 'z', 1, 0);
INSERT INTO district VALUES (1, 1, 'd', 's', 'c', 'st', 'z', 1, 0, 1);
INSERT INTO customer VALUES (1, 1, 1, 'f', 'm', 'l', 1, 'GC', 1, 1, 0, 0, 0, 0, '');
INSERT INTO item VALUES (1, 1, 'i', 1, 'd');
INSERT INTO stock VALUES (1, 1, 50, 's', 0, 0, 0, 'd');

-- transaction: new_order(w, d, c, n, all_local, i, supply, q)
BEGIN;
SELECT c_discount, c_last, c_credit, w_tax INTO discount, last, credit, tax FROM customer, warehouse
WHERE w_id = :w AND c_w_id = w_id AND c_d_id = :d AND c_id = :c;
SELECT d_next_o_id, d_tax INTO o, d_rate FROM district WHERE d_id = :d AND d_w_id = :w FOR UPDATE;
UPDATE district SET d_next_o_id = :o + 1 WHERE d_id = :d AND d_w_id = :w;
INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES (:o, :d, :w, :c, CURRENT_TIMESTAMP, :n, :all_local);
INSERT INTO new_orders (no_o_id, no_d_id, no_w_id) VALUES (:o, :d, :w);
SELECT i_price, i_name, i_data INTO price, name, data FROM item WHERE i_id = :i;
SELECT s_quantity, s_data, s_dist_01 INTO quantity, s_data, info FROM stock WHERE s_i_id = :i AND s_w_id = :supply FOR UPDATE;
SET quantity_left = CASE WHEN quantity > :q THEN quantity - :q ELSE quantity - :q + 91 END;
UPDATE stock SET s_quantity = :quantity_left WHERE s_i_id = :i AND s_w_id = :supply;
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info)
VALUES (:o, :d, :w, 1, :i, :supply, :q, :q * price, :info);
COMMIT;

-- transaction: payment(w, d, c, amount)
BEGIN;
UPDATE warehouse SET w_ytd = w_ytd + :amount WHERE w_id = :w;
SELECT w_street_1, w_city, w_state, w_zip, w_name INTO s1, s2, s3, s4, s5 FROM warehouse WHERE w_id = :w;
UPDATE district SET d_ytd = d_ytd + :amount WHERE d_w_id = :w AND d_id = :d;
SELECT c_balance, c_credit INTO balance, credit FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c FOR UPDATE;
UPDATE customer SET c_balance = c_balance - :amount, c_ytd_payment = c_ytd_payment + :amount, c_payment_cnt = c_payment_cnt + 1
WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) VALUES (:d, :w, :c, :d, :w, now(), :amount, 'x');
COMMIT;

-- transaction: order_status(w, d, c)
SELECT c_balance, c_first, c_middle, c_last INTO b, f, m, l FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
SELECT o_id, o_entry_d, COALESCE(o_carrier_id, 0) INTO o, e, carrier FROM orders WHERE o_w_id = :w AND o_d_id = :d AND o_c_id = :c
AND o_id = (SELECT MAX(o_id) FROM orders WHERE o_w_id = :w AND o_d_id = :d AND o_c_id = :c);
SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o;

-- transaction: delivery(w, d, carrier)
BEGIN;
SELECT COALESCE(MIN(no_o_id), 0) INTO o FROM new_orders WHERE no_d_id = :d AND no_w_id = :w;
IF o = 0 THEN ROLLBACK; END IF;
DELETE FROM new_orders WHERE no_o_id = :o AND no_d_id = :d AND no_w_id = :w;
SELECT o_c_id INTO c FROM orders WHERE o_id = :o AND o_d_id = :d AND o_w_id = :w;
UPDATE orders SET o_carrier_id = :carrier WHERE o_id = :o AND o_d_id = :d AND o_w_id = :w;
UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP WHERE ol_o_id = :o AND ol_d_id = :d AND ol_w_id = :w;
SELECT SUM(ol_amount) INTO total FROM order_line WHERE ol_o_id = :o AND ol_d_id = :d AND ol_w_id = :w;
UPDATE customer SET c_balance = c_balance + :total, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_id = :c AND c_d_id = :d AND c_w_id = :w;
COMMIT;

-- transaction: stock_level(w, d, level)
SELECT d_next_o_id INTO next FROM district WHERE d_w_id = :w AND d_id = :d;
SELECT COUNT(DISTINCT s_i_id) INTO low FROM order_line, stock WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id < :next
AND ol_o_id >= :next - 20 AND s_w_id = :w AND s_i_id = ol_i_id AND s_quantity < :level;

-- invariant: numbered
NOT EXISTS (SELECT 1 FROM district WHERE d_next_o_id < 0);
