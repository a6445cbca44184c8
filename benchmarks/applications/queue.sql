CREATE TABLE job (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state TEXT NOT NULL DEFAULT 'ready', worker INT, payload JSONB,
  run_at TIMESTAMPTZ NOT NULL DEFAULT now());
CREATE INDEX job_ready ON job (run_at) WHERE state = 'ready';

-- transaction: enqueue(data)
INSERT INTO job (payload) VALUES ($1) RETURNING id;

-- transaction: claim(w)
UPDATE job SET state = 'running', worker = $1
WHERE id = (SELECT id FROM job WHERE state = 'ready' ORDER BY run_at LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING id, payload;

-- transaction: finish(j)
UPDATE job SET state = 'done' WHERE id = $1 AND state = 'running';

-- transaction: tidy
DELETE FROM job WHERE state = 'done' AND run_at < now() - INTERVAL '7 days';
