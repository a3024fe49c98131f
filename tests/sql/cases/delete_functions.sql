-- case: a bucket is deleted
-- table: bucketed
DELETE FROM db.t WHERE system.bucket(4, id) = 0;
-- counts: deleted 2
-- rows:
--   id | v
--   3 | c
--   4 | d
--   5 | e
--   6 | f
--   7 | g
--   8 | h

-- case: a day is deleted
-- table: days
DELETE FROM db.t WHERE system.days(at) = DATE '2024-01-01';
-- counts: deleted 2
-- rows:
--   id | at | local | day
--   3 | 2024-01-02 00:00:00Z | 2024-01-02 00:00:00 | 2024-01-02
--   4 | 1969-12-31 23:59:59Z | 1969-12-31 23:59:59 | 1969-12-31
--   5 | null | null | null

-- case: rows of a truncated text are deleted
-- table: truncated
DELETE FROM db.t WHERE system.truncate(2, code) = 'ab' OR system.truncate(2, code) = '';
-- counts: deleted 3
-- rows:
--   id | code
--   3 | xyz
--   4 | null

-- case: a function and a condition that Spark evaluates select together
-- table: bucketed
DELETE FROM db.t WHERE system.bucket(4, id) <> 0 AND length(concat(v, v)) = 2 AND id % 2 = 0;
-- counts: deleted 3
-- rows:
--   id | v
--   1 | a
--   2 | b
--   3 | c
--   5 | e
--   7 | g

-- case: hours before 1970 are negative
-- table: days
DELETE FROM db.t WHERE system.hours(at) < 0;
-- counts: deleted 1
-- rows:
--   id | at | local | day
--   1 | 2024-01-01 10:00:00Z | 2024-01-01 10:00:00 | 2024-01-01
--   2 | 2024-01-01 23:59:59.999999Z | 2024-01-01 23:59:59 | 2024-01-01
--   3 | 2024-01-02 00:00:00Z | 2024-01-02 00:00:00 | 2024-01-02
--   5 | null | null | null
