-- case: a column added again under its name partitions again after its old field was dropped
-- table: stores
ALTER TABLE db.t DROP PARTITION FIELD store;
ALTER TABLE db.t DROP COLUMN store;
ALTER TABLE db.t ADD COLUMN store int;
ALTER TABLE db.t ADD PARTITION FIELD store;
INSERT INTO db.t (id, store) VALUES (8, 1);
-- rows:
--   id | amount | note | store
--   1 | 10.00 | a | null
--   2 | 20.50 | null | null
--   3 | 30.00 | c | null
--   4 | 40.25 | d | null
--   5 | 50.00 | e | null
--   6 | 60.00 | f | null
--   7 | 70.00 | g | null
--   8 | null | null | 1
