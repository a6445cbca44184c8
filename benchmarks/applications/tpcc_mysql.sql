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
DELIMITER $$
CREATE PROCEDURE `payment` (p_w INT, p_d INT, p_c INT, p_amount DECIMAL(6, 2), OUT p_balance DECIMAL(12, 2))
BEGIN
  DECLARE EXIT HANDLER FOR SQLEXCEPTION ROLLBACK;
  START TRANSACTION;
  UPDATE warehouse SET w_ytd = w_ytd + p_amount WHERE w_id = p_w;
  UPDATE district SET d_ytd = d_ytd + p_amount WHERE d_w_id = p_w AND d_id = p_d;
  SELECT c_balance INTO p_balance FROM customer WHERE c_w_id = p_w AND c_d_id = p_d AND c_id = p_c FOR UPDATE;
  UPDATE customer SET c_balance = p_balance - p_amount WHERE c_w_id = p_w AND c_d_id = p_d AND c_id = p_c;
  COMMIT;
END$$
CREATE PROCEDURE `delivery` (p_w INT, p_carrier INT)
BEGIN
  DECLARE v_d INT DEFAULT 1;
  DECLARE v_o INT;
  DECLARE v_c INT;
  START TRANSACTION;
  WHILE v_d <= 10 DO
    SELECT no_o_id INTO v_o FROM new_orders WHERE no_w_id = p_w AND no_d_id = v_d LIMIT 1;
    DELETE FROM new_orders WHERE no_o_id = v_o AND no_d_id = v_d AND no_w_id = p_w;
    SELECT o_c_id INTO v_c FROM orders WHERE o_id = v_o AND o_d_id = v_d AND o_w_id = p_w;
    UPDATE orders SET o_carrier_id = p_carrier WHERE o_id = v_o AND o_d_id = v_d AND o_w_id = p_w;
    UPDATE customer SET c_balance = c_balance + (SELECT SUM(ol_amount) FROM order_line WHERE ol_o_id = v_o AND ol_d_id = v_d AND ol_w_id = p_w)
    WHERE c_id = v_c AND c_d_id = v_d AND c_w_id = p_w;
    SET v_d = v_d + 1;
  END WHILE;
  COMMIT;
END$$
DELIMITER ;
