-- stock in MySQL: read, compare, write back; and as one statement
CREATE TABLE `stock` (
  `sku` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `quantity` int(11) NOT NULL DEFAULT '0',
  `updated_at` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (`sku`),
  KEY `by_quantity` (`quantity`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
INSERT INTO stock VALUES (1, 5, 1), (2, 4, 1);

DELIMITER //
CREATE PROCEDURE take(IN p_sku INT, IN p_n INT)
BEGIN
  DECLARE v_left INT;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  START TRANSACTION;
  SELECT quantity INTO v_left FROM stock WHERE sku = p_sku FOR UPDATE;
  IF v_left >= p_n THEN
    UPDATE stock SET quantity = quantity - p_n WHERE sku = p_sku;
  END IF;
  COMMIT;
END//
CREATE PROCEDURE take_at_once(IN p_sku INT, IN p_n INT)
BEGIN
  UPDATE stock SET quantity = quantity - p_n WHERE sku = p_sku AND quantity >= p_n;
  IF ROW_COUNT() = 0 THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'sold out';
  END IF;
END//
CREATE PROCEDURE take_carelessly(IN p_sku INT, IN p_n INT)
BEGIN
  DECLARE v_left INT DEFAULT 0;
  SELECT quantity INTO v_left FROM stock WHERE sku = p_sku;
  IF v_left >= p_n THEN
    UPDATE stock SET quantity = v_left - p_n WHERE sku = p_sku;
  END IF;
END//
DELIMITER ;

-- invariant: never_below
NOT EXISTS (SELECT 1 FROM stock WHERE quantity < 0);
