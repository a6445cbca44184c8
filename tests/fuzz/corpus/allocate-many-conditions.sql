-- Students enrol in courses of limited capacity.
CREATE TABLE student (s_id INT PRIMARY KEY);
CREATE TABLE course (
  c_id INT PRIMARY KEY,
  c_capacity INT NOT NULL
);
CREATE TABLE enrollment (e_s_id INT, e_c_id INT);

-- transaction: register(s)
INSERT INTO student (s_id) VALUES (:s);

-- transaction: add_course(c, capacity INT)
-- assume: capacity >= 0
INSERT INTO course VALUES (:c, :capacity);

-- transaction: enroll(s, c)
BEGIN;
SELECT s_id INTO found FROM student WHERE s_id = :s;
SELECT c_capacity INTO capacity FROM course WHERE c_id = :c;
SELECT COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- COUNT(*) INTO already FROM enrollment WHERE e_s_id = :s AND e_c_id = :c;
IF capacity > 0 AND already = 0 THEN
  INSERT INTO enrollment (e_s_id, e_c_id) VALUES (:s, :c);
  UPDATE course SET c_capacity = c_capacity - 1 WHERE c_id = :c;
END IF;
COMMIT;

-- transaction: cancel_course(c)
IF NOT EXISTS (SELECT 1 FROM enrollment WHERE e_c_id = :c) THEN
  DELETE FROM course WHERE c_id = :c;
END IF;

-- transaction: deregister(s)
SELECT COUNT(*) INTO enrolled FROM enrollment WHERE e_s_id = :s;
IF enrolled > 0 THEN ROLLBACK; END IF;
DELETE FROM student WHERE s_id = :s;

-- invariant: I1: NOT EXISTS (
--   SELECT 1 FROM enrollment e
--   WHERE NOT EXISTS (SELECT 1 FROM student WHERE s_id = e.e_s_id)
--      OR NOT EXISTS (SELECT 1 FROM course WHERE c_id = e.e_c_id))

-- invariant: I2
NOT EXISTS (SELECT 1 FROM course WHERE c_capacity < 0);
