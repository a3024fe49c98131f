-- case: a cached table shows rows that come after it
-- table: two
CACHE TABLE db.t;
INSERT INTO db.t VALUES (6, 'six');
SELECT id FROM db.t WHERE id > 4;
-- result:
--   id
--   5
--   6

-- case: a cached table shows rows as UPDATE and DELETE leave them
-- table: two
CACHE LAZY TABLE db.t;
UPDATE db.t SET v = 'changed' WHERE id = 1;
DELETE FROM db.t WHERE id > 2;
SELECT * FROM db.t;
-- result:
--   id | v
--   1 | changed
--   2 | two

-- case: a cached table shows rows as MERGE leaves them
-- table: two
CACHE TABLE db.t OPTIONS ('storageLevel' = 'MEMORY_ONLY');
MERGE INTO db.t AS t USING (SELECT 1 AS id, 'x' AS v UNION ALL SELECT 9, 'y') AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM db.t WHERE id IN (1, 9);
-- result:
--   id | v
--   1 | x
--   9 | y

-- case: a cached view shows the table as it is
-- table: two
CREATE OR REPLACE TEMPORARY VIEW kept_in_memory AS SELECT id FROM db.t WHERE id > 3;
CACHE TABLE kept_in_memory;
INSERT INTO db.t VALUES (6, 'six');
SELECT * FROM kept_in_memory;
-- result:
--   id
--   4
--   5
--   6

-- case: UNCACHE and REFRESH change no rows
-- table: two
CACHE TABLE db.t;
REFRESH TABLE db.t;
UNCACHE TABLE db.t;
UNCACHE TABLE IF EXISTS db.t;
SELECT count(*) AS n FROM db.t;
-- result:
--   n
--   5

-- case: a table that is not there cannot be cached
-- table: two
CACHE TABLE db.nope;
-- error: TableNotFoundError

-- case: a table that is not there cannot be refreshed
-- table: two
REFRESH TABLE db.nope;
-- error: TableNotFoundError
