-- Two ways to book a place in a course; the row of the course is locked after counting, or before.
CREATE TABLE student (s_id INT PRIMARY KEY);
CREATE TABLE course (c_id INT PRIMARY KEY, c_capacity INT CHECK (c_capacity >= 0));
CREATE TABLE enrollment (
  e_s_id INT REFERENCES student (s_id),
  e_c_id INT REFERENCES course (c_id),
  UNIQUE (e_s_id, e_c_id));
INSERT INTO student VALUES (1), (2);
INSERT INTO course VALUES (1, 1), (2, 5);

-- transaction: count_then_lock(s, c)
SELECT COUNT(*) INTO enrolled FROM enrollment WHERE e_c_id = :c;
SELECT c_capacity INTO capacity FROM course WHERE c_id = :c FOR UPDATE;
IF enrolled < capacity THEN
  INSERT INTO enrollment VALUES (:s, :c);
END IF;

-- transaction: lock_then_count(s, c)
SELECT c_capacity INTO capacity FROM course WHERE c_id = :c FOR UPDATE;
SELECT COUNT(*) INTO enrolled FROM enrollment WHERE e_c_id = :c;
IF enrolled < capacity THEN
  INSERT INTO enrollment VALUES (:s, :c);
END IF;


-- invariant: not_overbooked
NOT EXISTS (SELECT 1 FROM course c WHERE c.c_capacity < (SELECT COUNT(*) FROM enrollment WHERE e_c_id = c.c_id));
