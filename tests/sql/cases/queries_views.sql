-- case: a temporary view shows rows that come after it
-- table: two
CREATE OR REPLACE TEMPORARY VIEW seen AS SELECT id, v FROM db.t WHERE id > 3;
INSERT INTO db.t VALUES (6, 'six');
DELETE FROM db.t WHERE id = 4;
SELECT * FROM seen;
-- result:
--   id | v
--   5 | five
--   6 | six

-- case: a global temporary view shows rows that come after it
-- table: two
CREATE OR REPLACE GLOBAL TEMPORARY VIEW seen_by_all AS SELECT id FROM db.t WHERE v LIKE 't%';
UPDATE db.t SET v = 'ten' WHERE id = 1;
SELECT * FROM global_temp.seen_by_all;
-- result:
--   id
--   1
--   2
--   3

-- case: a view over a view shows the table as it is
-- table: two
CREATE OR REPLACE TEMPORARY VIEW inner_seen AS SELECT * FROM db.t WHERE id < 3;
CREATE OR REPLACE TEMPORARY VIEW outer_seen AS SELECT upper(v) AS v FROM inner_seen;
INSERT INTO db.t VALUES (0, 'zero');
SELECT * FROM outer_seen;
-- result:
--   v
--   ONE
--   TWO
--   ZERO

-- case: a view joins a lake table with a view of the session
-- table: two
-- view few: VALUES (1, 'x'), (9, 'y') AS few(id, w)
CREATE OR REPLACE TEMPORARY VIEW joined AS SELECT few.w, t.v FROM few LEFT JOIN db.t AS t ON few.id = t.id;
INSERT INTO db.t VALUES (9, 'nine');
SELECT * FROM joined;
-- result:
--   w | v
--   x | one
--   y | nine

-- case: a view names its columns
-- table: two
CREATE OR REPLACE TEMPORARY VIEW renamed (number COMMENT 'the id', word) COMMENT 'all' AS SELECT id, v FROM db.t WHERE id = 1;
SELECT word, number FROM renamed;
-- result:
--   word | number
--   one | 1

-- case: a view has the columns that its table had
-- table: two
CREATE OR REPLACE TEMPORARY VIEW starred AS SELECT * FROM db.t WHERE id = 1;
ALTER TABLE db.t ADD COLUMN w int;
SELECT * FROM starred;
-- result:
--   id | v
--   1 | one

-- case: a view with more names than columns is refused
-- table: two
CREATE OR REPLACE TEMPORARY VIEW too_many (a, b, c) AS SELECT id, v FROM db.t;
-- error: InvalidStatementError

-- case: a view with two columns of one name is refused
-- table: two
CREATE OR REPLACE TEMPORARY VIEW doubled_columns AS SELECT id, id FROM db.t;
-- error: InvalidStatementError

-- case: a view that would read itself is refused
-- table: two
CREATE OR REPLACE TEMPORARY VIEW looped AS SELECT * FROM db.t;
CREATE OR REPLACE TEMPORARY VIEW looped AS SELECT * FROM looped;
-- error: InvalidStatementError

-- case: a temporary view with a namespace is refused
-- table: two
CREATE OR REPLACE TEMPORARY VIEW db.placed AS SELECT * FROM db.t;
-- error: InvalidStatementError

-- case: a common table expression goes before a view
-- table: two
CREATE OR REPLACE TEMPORARY VIEW hidden AS SELECT id FROM db.t;
WITH hidden AS (SELECT 'own' AS id) SELECT * FROM hidden;
-- result:
--   id
--   own

-- case: a common table expression is not seen inside of a view
-- table: two
-- view few: VALUES (1, 'x'), (9, 'y') AS few(id, w)
CREATE OR REPLACE TEMPORARY VIEW matching AS SELECT t.v FROM db.t AS t JOIN few ON t.id = few.id;
WITH few AS (SELECT 2 AS id, 'z' AS w) SELECT matching.v, few.w FROM matching, few;
-- result:
--   v | w
--   one | z

-- case: a view is read in a subquery, in a set operation and as a table
-- table: two
CREATE OR REPLACE TEMPORARY VIEW several AS SELECT id FROM db.t WHERE id < 3;
SELECT id FROM db.t WHERE id IN (SELECT id FROM several) UNION ALL TABLE several;
-- result:
--   id
--   1
--   1
--   2
--   2

-- case: a view with common table expressions of its own
-- table: two
CREATE OR REPLACE TEMPORARY VIEW with_own AS WITH s AS (SELECT id FROM db.t) SELECT max(id) AS most FROM s;
INSERT INTO db.t VALUES (70, 'seventy');
SELECT * FROM with_own AS w (highest);
-- result:
--   highest
--   70

-- case: a view is the source of MERGE
-- table: two
-- table u: two
CREATE OR REPLACE TEMPORARY VIEW source_view AS SELECT id, upper(v) AS v FROM db.u WHERE id > 4;
INSERT INTO db.u VALUES (6, 'six');
MERGE INTO db.t AS t USING source_view AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 1, inserted 1
-- rows:
--   id | v
--   1 | one
--   2 | two
--   3 | three
--   4 | four
--   5 | FIVE
--   6 | SIX

-- case: a view of the target is the source of MERGE
-- table: two
CREATE OR REPLACE TEMPORARY VIEW own_rows AS SELECT id + 10 AS id, v FROM db.t WHERE id < 3;
MERGE INTO db.t AS t USING own_rows AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
-- counts: inserted 2
-- rows:
--   id | v
--   1 | one
--   11 | one
--   12 | two
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: a view is read in the condition of DELETE
-- table: two
-- table u: two
CREATE OR REPLACE TEMPORARY VIEW gone AS SELECT id FROM db.u WHERE v LIKE 't%';
UPDATE db.u SET v = 'tip' WHERE id = 1;
DELETE FROM db.t WHERE id IN (SELECT id FROM gone);
-- counts: deleted 3
-- rows:
--   id | v
--   4 | four
--   5 | five

-- case: a view is read in the condition of UPDATE
-- table: two
-- table u: two
CREATE OR REPLACE TEMPORARY VIEW chosen AS SELECT id FROM db.u WHERE id < 3;
DELETE FROM db.u WHERE id = 1;
UPDATE db.t SET v = 'chosen' WHERE EXISTS (SELECT 1 FROM chosen WHERE chosen.id = t.id);
-- counts: updated 1
-- rows:
--   id | v
--   1 | one
--   2 | chosen
--   3 | three
--   4 | four
--   5 | five

-- case: rows of a view are inserted
-- table: two
CREATE OR REPLACE TEMPORARY VIEW copied AS SELECT id + 100 AS id, v FROM db.t;
INSERT INTO db.t SELECT * FROM copied WHERE id > 104;
-- rows:
--   id | v
--   1 | one
--   105 | five
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: rows of a view are not changed
-- table: two
CREATE OR REPLACE TEMPORARY VIEW unchanged AS SELECT * FROM db.t;
DELETE FROM unchanged WHERE id = 1;
-- error: InvalidStatementError

-- case: ALTER VIEW gives a view another query
-- table: two
CREATE OR REPLACE TEMPORARY VIEW altered AS SELECT * FROM db.t;
ALTER VIEW altered AS SELECT count(*) AS n FROM db.t;
INSERT INTO db.t VALUES (6, 'six');
SELECT * FROM altered;
-- result:
--   n
--   6

-- case: a dropped view is gone
-- table: two
CREATE OR REPLACE TEMPORARY VIEW dropped AS SELECT * FROM db.t;
DROP VIEW dropped;
SELECT * FROM dropped;
-- error: TableNotFoundError

-- case: DROP VIEW of a table is refused
-- table: two
DROP VIEW db.t;
-- error: InvalidStatementError

-- case: DROP VIEW IF EXISTS of nothing does nothing
-- table: two
DROP VIEW IF EXISTS never_made;
-- rows:
--   id | v
--   1 | one
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: a catalog without views refuses CREATE VIEW
-- table: two
CREATE VIEW db.kept AS SELECT * FROM db.t;
-- error: UnsupportedFeatureError

-- case: a view joins a lake table with a table of Spark's own catalog
-- table: two
CREATE TABLE IF NOT EXISTS spark_catalog.default.words_of_spark USING parquet AS SELECT 9 AS id, 'y' AS w;
CREATE OR REPLACE TEMPORARY VIEW with_spark AS SELECT s.w, t.v FROM spark_catalog.default.words_of_spark AS s JOIN db.t AS t ON s.id = t.id;
INSERT INTO db.t VALUES (9, 'nine');
SELECT * FROM with_spark;
-- result:
--   w | v
--   y | nine
