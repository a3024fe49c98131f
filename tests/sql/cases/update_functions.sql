-- case: a column is set to a bucket
-- table: plain
UPDATE db.t SET a = system.bucket(16, id), b = system.truncate(70, b) WHERE system.truncate(2, id) = 2;
-- counts: updated 2
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 4 | 140
--   3 | 3 | 280
--   4 | 40 | 400
