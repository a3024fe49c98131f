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

-- case: a cached table shows rows as a rollback leaves them
-- table: two
CACHE TABLE db.t;
CALL system.rollback_to_snapshot('db.t', <snapshot 1>);
SELECT id FROM db.t;
-- result:
--   id
--   1
--   2
--   3

-- case: a cached table shows rows that are cherry-picked
-- table: two
CALL system.rollback_to_snapshot('db.t', <snapshot 1>);
CACHE TABLE db.t;
CALL system.cherrypick_snapshot('db.t', <snapshot 2>);
SELECT id FROM db.t;
-- result:
--   id
--   1
--   2
--   3
--   4
--   5

-- case: a cached table shows rows that are published
-- table: two
-- set: spark.wap.id = audited
ALTER TABLE db.t SET TBLPROPERTIES ('write.wap.enabled' = 'true');
CACHE TABLE db.t;
INSERT INTO db.t VALUES (6, 'six');
CALL system.publish_changes('db.t', 'audited');
SELECT id FROM db.t WHERE id > 4;
-- result:
--   id
--   5
--   6

-- case: rows that are not published are not in a cached table
-- table: two
-- set: spark.wap.id = audited
ALTER TABLE db.t SET TBLPROPERTIES ('write.wap.enabled' = 'true');
CACHE TABLE db.t;
INSERT INTO db.t VALUES (6, 'six');
SELECT id FROM db.t WHERE id > 4;
-- result:
--   id
--   5

-- case: a cached table shows rows as maintenance leaves them
-- table: two
CACHE TABLE db.t;
CALL system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'));
DELETE FROM db.t WHERE id = 5;
CALL system.rewrite_manifests('db.t');
SELECT id FROM db.t WHERE id > 3;
-- result:
--   id
--   4

-- case: a cached table shows the snapshot that is made the current one
-- table: two
CACHE TABLE db.t;
CALL system.set_current_snapshot('db.t', <snapshot 1>);
SELECT id FROM db.t;
-- result:
--   id
--   1
--   2
--   3
