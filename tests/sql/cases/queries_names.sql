-- case: USE gives names without a namespace theirs
-- table: two
USE db;
INSERT INTO t VALUES (6, 'six');
DELETE FROM t WHERE id = 1;
SELECT id FROM t;
-- result:
--   id
--   2
--   3
--   4
--   5
--   6

-- case: a view made after USE keeps its namespace
-- table: two
USE db;
CREATE OR REPLACE TEMPORARY VIEW made_in_use AS SELECT id FROM t WHERE id < 3;
USE default;
SELECT id FROM made_in_use;
-- result:
--   id
--   1
--   2

-- case: SHOW CURRENT NAMESPACE tells what USE said
-- table: two
USE db;
SHOW CURRENT NAMESPACE;
-- result:
--   catalog | namespace
--   lake | db

-- case: the current namespace is default at first
-- table: two
SHOW CURRENT NAMESPACE;
-- result:
--   catalog | namespace
--   lake | default

-- case: a name without a namespace means default
-- table: two
DROP TABLE IF EXISTS plainly_named;
CREATE TABLE plainly_named (id int) USING iceberg;
INSERT INTO plainly_named VALUES (1), (2);
SELECT a.id, b.id AS same FROM plainly_named AS a JOIN default.plainly_named AS b ON a.id = b.id;
-- result:
--   id | same
--   1 | 1
--   2 | 2

-- case: USE of a namespace that is not there is refused
-- table: two
USE nowhere;
-- error: TableNotFoundError
