-- an order with its lines, as an application sends it: placeholders, RETURNING
CREATE TABLE product (id SERIAL PRIMARY KEY, name TEXT NOT NULL UNIQUE, price INTEGER NOT NULL, stock INTEGER NOT NULL);
CREATE TABLE orders (id SERIAL PRIMARY KEY, customer_id INTEGER NOT NULL, total INTEGER NOT NULL DEFAULT 0,
  status VARCHAR(20) NOT NULL DEFAULT 'new', created TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE order_line (order_id INTEGER NOT NULL, product_id INTEGER NOT NULL, quantity INTEGER NOT NULL);
ALTER TABLE order_line ADD CONSTRAINT line_key PRIMARY KEY (order_id, product_id);
ALTER TABLE order_line ADD CONSTRAINT line_order FOREIGN KEY (order_id) REFERENCES orders (id);
ALTER TABLE order_line ADD CONSTRAINT line_product FOREIGN KEY (product_id) REFERENCES product (id);
INSERT INTO product VALUES (1, 'a', 5, 3), (2, 'b', 7, 2);
INSERT INTO orders VALUES (1000, 1, 0, 'new', 1);

-- transaction: place(customer, quantity, product, quantity, product, product, quantity, quantity)
-- assume: quantity > 0
BEGIN;
INSERT INTO orders (customer_id) VALUES (%s) RETURNING id INTO order_id;
UPDATE product SET stock = stock - %s WHERE id = %s AND stock >= %s;
IF NOT FOUND THEN ROLLBACK; END IF;
SELECT price INTO price FROM product WHERE id = %s;
INSERT INTO order_line (order_id, product_id, quantity) VALUES (order_id, %s, %s);
UPDATE orders SET total = total + price * %s WHERE id = order_id;
COMMIT;

-- transaction: cancel(o)
SELECT status INTO state FROM orders WHERE id = $1 FOR UPDATE;
IF state <> 'new' THEN ROLLBACK; END IF;
UPDATE orders SET status = 'cancelled' WHERE id = $1;

-- transaction: show(o)
SELECT o.total, l.quantity, p.name FROM orders o JOIN order_line l ON l.order_id = o.id JOIN product p ON p.id = l.product_id
WHERE o.id = :o;

-- invariant: in_stock
NOT EXISTS (SELECT 1 FROM product WHERE stock < 0);
