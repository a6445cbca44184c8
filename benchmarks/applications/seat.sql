CREATE TABLE seat (show_id INT NOT NULL, number INT NOT NULL, booked_by INT NOT NULL DEFAULT 0, PRIMARY KEY (show_id, number));

-- transaction: book(s, n, u)
BEGIN
  PERFORM 1 FROM seat WHERE show_id = s AND number = n AND booked_by = 0 FOR UPDATE NOWAIT;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'taken';
  END IF;
  UPDATE seat SET booked_by = u WHERE show_id = s AND number = n;
END;

-- transaction: any_free(s)
SELECT number INTO n FROM seat WHERE show_id = :s AND booked_by = 0 ORDER BY number LIMIT 1;
