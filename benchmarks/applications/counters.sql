-- upserts of both dialects, INSERT … SELECT, UPDATE … FROM
CREATE TABLE hits (page INT PRIMARY KEY, n INT NOT NULL);
CREATE TABLE daily (page INT, day DATE, n INT NOT NULL, PRIMARY KEY (page, day));
INSERT INTO hits VALUES (1, 0);

-- transaction: hit(p)
INSERT INTO hits (page, n) VALUES (:p, 1) ON CONFLICT (page) DO UPDATE SET n = hits.n + 1;

-- transaction: hit_mysql(p)
INSERT INTO hits (page, n) VALUES (:p, 1) ON DUPLICATE KEY UPDATE n = n + VALUES(n);

-- transaction: roll(d DATE)
INSERT INTO daily (page, day, n) SELECT page, :d, n FROM hits;

-- transaction: correct(p, d DATE)
UPDATE hits SET n = hits.n + daily.n FROM daily WHERE daily.page = hits.page AND daily.day = :d AND hits.page = :p;

-- invariant: counted
NOT EXISTS (SELECT 1 FROM hits WHERE n < 0) AND NOT EXISTS (SELECT 1 FROM daily WHERE n < 0);
