-- case: system.bucket gives the bucket of every type
-- table: types
SELECT id, system.bucket(16, id) AS a, system.bucket(16, l) AS b, system.bucket(16, dec) AS c, system.bucket(16, s) AS d, system.bucket(16, bin) AS e, system.bucket(16, dt) AS f, system.bucket(16, ts) AS g FROM db.t;
-- result:
--   id | a | b | c | d | e | f | g
--   1 | 4 | 0 | 6 | 12 | 14 | 6 | 14
--   2 | 4 | 8 | 10 | 0 | 0 | 12 | 12
--   3 | 3 | null | null | null | null | null | null

-- case: system.truncate cuts numbers, texts and bytes
-- table: types
SELECT id, system.truncate(7, id) AS a, system.truncate(10, l) AS b, system.truncate(50, dec) AS c, system.truncate(2, s) AS d, system.truncate(1, bin) AS e FROM db.t;
-- result:
--   id | a | b | c | d | e
--   1 | 0 | 100 | 1.00 | on | x'01'
--   2 | 0 | -10 | -100.00 | '' | x''
--   3 | 0 | null | null | null | null

-- case: system.years to system.hours count from 1970
-- table: days
SELECT id, system.years(at) AS a, system.months(local) AS b, system.days(at) AS c, system.hours(local) AS d, system.years(day) AS e, system.days(day) AS f FROM db.t;
-- result:
--   id | a | b | c | d | e | f
--   1 | 54 | 648 | 2024-01-01 | 473362 | 54 | 2024-01-01
--   2 | 54 | 648 | 2024-01-01 | 473375 | 54 | 2024-01-01
--   3 | 54 | 648 | 2024-01-02 | 473376 | 54 | 2024-01-02
--   4 | -1 | -1 | 1969-12-31 | -1 | -1 | 1969-12-31
--   5 | null | null | null | null | null | null

-- case: times are counted in UTC whatever the zone of the session
-- table: days
-- set: spark.sql.session.timeZone = America/New_York
SELECT id, system.days(at) AS c, system.hours(at) AS d, system.days(local) AS e FROM db.t;
-- result:
--   id | c | d | e
--   1 | 2024-01-01 | 473362 | 2024-01-01
--   2 | 2024-01-01 | 473375 | 2024-01-01
--   3 | 2024-01-02 | 473376 | 2024-01-02
--   4 | 1969-12-31 | -1 | 1969-12-31
--   5 | null | null | null

-- case: a filter by a bucket selects its rows
-- table: bucketed
SELECT id FROM db.t WHERE system.bucket(4, id) = 0;
-- result:
--   id
--   1
--   2

-- case: a filter by a bucket of another number selects its rows
-- table: bucketed
SELECT id FROM db.t WHERE system.bucket(8, id) IN (1, 2) AND v > 'b';
-- result:
--   id
--   6

-- case: rows are grouped and ordered by functions
-- table: bucketed
SELECT system.bucket(2, id) AS b, count(*) AS n FROM db.t GROUP BY system.bucket(2, id) ORDER BY 1;
-- result:
--   b | n
--   0 | 3
--   1 | 5

-- case: system.truncate takes a literal
-- table: two
SELECT system.truncate(3, 'iceberg') AS a, system.truncate(10, 34) AS b, system.bucket(16, 34) AS c, system.days(DATE '2017-12-01') AS d;
-- result:
--   a | b | c | d
--   ice | 30 | 3 | 2017-12-01

-- case: system.truncate of a struct's field
-- table: nested
SELECT id, system.truncate(1, s.b) AS b, system.truncate(10, t.s.in.x) AS x FROM db.t;
-- result:
--   id | b | x
--   1 | x | 0
--   2 | null | null
--   3 | null | null
--   4 | z | 0

-- case: a float has no bucket
-- table: doubles
SELECT system.bucket(4, d) FROM db.t;
-- error: InvalidStatementError
