CREATE TABLE customers (id SERIAL PRIMARY KEY, name VARCHAR(50) NOT NULL, balance INT NOT NULL);
CREATE TABLE products (id SERIAL PRIMARY KEY, name VARCHAR(50) NOT NULL UNIQUE, price INT NOT NULL CHECK (price >= 0),
  stock INT NOT NULL);
CREATE TABLE orders (id SERIAL PRIMARY KEY, customer_id INT NOT NULL REFERENCES customers (id),
  product_id INT NOT NULL REFERENCES products (id), quantity INT NOT NULL, status TEXT NOT NULL);
-- transaction: insert_orders(c INT, p INT, n INT, status TEXT, stock INT)
SELECT id, name, balance FROM customers WHERE id = :c;
SELECT id, name, price, stock FROM products WHERE id = :p FOR UPDATE;
INSERT INTO orders (customer_id, product_id, quantity, status) VALUES (:c, :p, :n, :status) RETURNING id;
UPDATE products SET stock = :stock WHERE id = :p;
-- transaction: read_orders(o INT)
SELECT id, customer_id, product_id, quantity, status FROM orders WHERE id = :o FOR UPDATE;
-- transaction: update_customers(c INT, v INT)
SELECT id, name, balance FROM customers WHERE id = :c;
UPDATE customers SET balance = :v WHERE id = :c;
-- transaction: update_products(n INT, p INT)
UPDATE products SET stock = stock + :n WHERE id = :p;
-- transaction: read_customers(c INT)
SELECT id, name, balance FROM customers WHERE id = :c;
-- transaction: read_products(p INT)
SELECT stock FROM products WHERE id = :p;
-- transaction: update_orders(o INT, status TEXT)
SELECT id, customer_id, product_id, quantity, status FROM orders WHERE id = :o FOR UPDATE;
UPDATE orders SET status = :status WHERE id = :o;
-- invariant: stock
NOT EXISTS (SELECT 1 FROM products WHERE stock < 0);
