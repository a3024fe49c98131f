-- case: a subquery is a source
-- table: two
-- view s: VALUES (2, 'TWO'), (4, 'FOUR'), (9, 'NINE') AS s(id, v)
MERGE INTO db.t AS t USING (SELECT id, lower(v) AS v FROM s WHERE id > 2) AS x ON t.id = x.id
WHEN MATCHED THEN UPDATE SET v = x.v WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 1, inserted 1
-- rows:
--   id | v
--   1 | one
--   2 | two
--   3 | three
--   4 | four
--   5 | five
--   9 | nine

-- case: VALUES are a source
-- table: two
MERGE INTO db.t AS t USING (SELECT * FROM VALUES (1, 'x'), (9, 'y') AS v(id, v)) AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 1, inserted 1
-- rows:
--   id | v
--   1 | x
--   2 | two
--   3 | three
--   4 | four
--   5 | five
--   9 | y

-- case: VALUES without names are a source
-- table: two
MERGE INTO db.t AS t USING (VALUES (1, 'x'), (9, 'y')) AS s ON t.id = s.col1
WHEN MATCHED THEN UPDATE SET v = s.col2 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (col1, col2);
-- counts: updated 1, inserted 1
-- rows:
--   id | v
--   1 | x
--   2 | two
--   3 | three
--   4 | four
--   5 | five
--   9 | y

-- case: names of columns after the source's alias are refused
-- table: two
MERGE INTO db.t AS t USING (VALUES (1, 'x')) AS s(id, v) ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- error: InvalidStatementError

-- case: a common table expression before MERGE is known to its source
-- table: two
WITH s AS (SELECT 1 AS id, 'x' AS v) MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- counts: updated 1
-- rows:
--   id | v
--   1 | x
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: a common table expression within the source works
-- table: two
MERGE INTO db.t USING (WITH c AS (SELECT 1 AS id, 'x' AS v) SELECT * FROM c) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- counts: updated 1
-- rows:
--   id | v
--   1 | x
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: another table of the lake is a source
-- table: people
-- table u: two
MERGE INTO db.t USING db.u ON t.id = u.id
WHEN MATCHED THEN UPDATE SET name = u.v WHEN NOT MATCHED BY SOURCE THEN DELETE;
-- counts: updated 5, deleted 1
-- rows:
--   id | name | age | city
--   1 | one | 30 | oslo
--   2 | two | null | rome
--   3 | three | 50 | null
--   4 | four | 40 | oslo
--   5 | five | 20 | rome

-- case: a table merges with itself
-- table: plain
MERGE INTO db.t AS t USING db.t AS s ON t.id = s.id WHEN MATCHED AND t.id > 2 THEN UPDATE SET a = s.a + s.b;
-- counts: updated 2
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 330 | 300
--   4 | 440 | 400

-- case: a table takes rows that are made from its own
-- table: plain
MERGE INTO db.t AS t USING (SELECT id + 2 AS id, a, b FROM db.t) AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 2, inserted 2
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 10 | 100
--   4 | 20 | 200
--   5 | 30 | 300
--   6 | 40 | 400

-- case: a query of aggregates over the table is a source
-- table: doubled
MERGE INTO db.t AS t USING (SELECT id, count(*) AS n, min(v) AS v FROM db.t GROUP BY id) AS s ON t.id = s.id AND s.n > 1
WHEN MATCHED AND t.v = s.v THEN UPDATE SET v = concat(s.v, s.n) WHEN MATCHED THEN DELETE;
-- counts: updated 3, deleted 1
-- rows:
--   id | v
--   1 | a2
--   2 | c2
--   2 | c2
--   3 | d

-- case: a join is a source
-- table: two
-- table u: plain
-- view s: VALUES (2, 'TWO'), (3, 'THREE') AS s(id, v)
MERGE INTO db.t AS t USING (SELECT s.id, concat(s.v, u.a) AS v FROM s JOIN db.u AS u ON s.id = u.id) AS j ON t.id = j.id
WHEN MATCHED THEN UPDATE SET v = j.v;
-- counts: updated 2
-- rows:
--   id | v
--   1 | one
--   2 | TWO20
--   3 | THREE30
--   4 | four
--   5 | five

-- case: a function is a source
-- table: plain
MERGE INTO db.t AS t USING (SELECT * FROM range(3, 6)) AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET a = 0 WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, -1);
-- counts: updated 2, inserted 1
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 0 | 300
--   4 | 0 | 400
--   5 | -1 | null

-- case: the source has its columns in another order
-- table: two
-- view s: VALUES ('TWO', 2), ('NINE', 9) AS s(v, id)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 1, inserted 1
-- rows:
--   id | v
--   1 | one
--   2 | TWO
--   3 | three
--   4 | four
--   5 | five
--   9 | NINE

-- case: the source has its names in another case
-- table: two
-- view s: VALUES (2, 'TWO'), (9, 'NINE') AS s(ID, V)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 1, inserted 1
-- rows:
--   id | v
--   1 | one
--   2 | TWO
--   3 | three
--   4 | four
--   5 | five
--   9 | NINE

-- case: names in another case are unknown where the session says so
-- table: two
-- view s: VALUES (2, 'TWO'), (9, 'NINE') AS s(id, V)
-- set: spark.sql.caseSensitive = true
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- error: InvalidStatementError

-- case: columns that only the source has are left out by stars
-- table: two
-- view s: VALUES (2, 'TWO', true), (9, 'NINE', false) AS s(id, v, more)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED AND s.more THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 1, inserted 1
-- rows:
--   id | v
--   1 | one
--   2 | TWO
--   3 | three
--   4 | four
--   5 | five
--   9 | NINE

-- case: a star needs all columns of the target to update
-- table: people
-- view s: VALUES (1, 'x') AS s(id, name)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- error: InvalidStatementError

-- case: a star needs all columns of the target to insert
-- table: people
-- view s: VALUES (9, 'x') AS s(id, name)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
-- error: InvalidStatementError

-- case: the source's types are cast to the target's
-- table: plain
-- view s: VALUES (1L, 5.0D, 7.9) AS s(id, a, b)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- counts: updated 1
-- rows:
--   id | a | b
--   1 | 5 | 7
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: a text of the source is not stored as a number
-- table: plain
-- view s: VALUES (1, '5', 7) AS s(id, a, b)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- error: SchemaMismatchError

-- case: a text of the source is not inserted as a number
-- table: plain
-- view s: VALUES (9, '5', 7) AS s(id, a, b)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
-- error: SchemaMismatchError

-- case: a value of the source that does not fit is an error
-- table: plain
-- view s: VALUES (1, 3000000000, 7) AS s(id, a, b)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- error: InvalidStatementError

-- case: a value that does not fit is no error where its row is not taken
-- table: plain
-- view s: VALUES (9, 3000000000, 7) AS s(id, a, b)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- counts: none
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: an inserted value that does not fit is an error
-- table: plain
-- view s: VALUES (9, 3000000000, 7) AS s(id, a, b)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
-- error: InvalidStatementError

-- case: a NULL of the source does not go into a required column
-- table: required
-- view s: VALUES (1, NULL, 5), (2, 'x', 6) AS s(id, v, n)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- error: SchemaMismatchError

-- case: nullable source columns without nulls go into required ones
-- table: required
-- view s: VALUES (1, 'x', NULL), (9, 'y', 6) AS s(id, v, n)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 1, inserted 1
-- rows:
--   id | v | n
--   1 | x | null
--   2 | b | null
--   3 | c | 30
--   9 | y | 6

-- case: an insert that leaves out a required column is refused
-- table: required
-- view s: VALUES (9, 'y', 6) AS s(id, v, n)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n);
-- error: InvalidStatementError

-- case: a source of random numbers is read once
-- table: two
MERGE INTO db.t AS t USING (SELECT id, CAST(floor(rand() * 0) AS string) AS v FROM range(1, 3)) AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *;
-- java: it cannot rewrite files for a source of random numbers
-- counts: updated 2
-- rows:
--   id | v
--   1 | 0
--   2 | 0
--   3 | three
--   4 | four
--   5 | five

-- case: an unknown source is refused
-- table: two
MERGE INTO db.t USING db.nothing AS s ON t.id = s.id WHEN MATCHED THEN DELETE;
-- error: RowlakeError

-- case: an unknown target is refused
-- table: two
-- view s: VALUES (1, 'x') AS s(id, v)
MERGE INTO db.nothing AS t USING s ON t.id = s.id WHEN MATCHED THEN DELETE;
-- error: TableNotFoundError

-- case: a branch is a source
-- table: branched
MERGE INTO db.t AS t USING db.t.branch_b AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET v = concat('b ', s.v) WHEN NOT MATCHED BY SOURCE THEN DELETE;
-- counts: updated 3, deleted 1
-- rows:
--   id | v
--   1 | b a
--   2 | b b
--   3 | b c
-- rows db.t.branch_b:
--   id | v
--   1 | a
--   2 | b
--   3 | c

-- case: a branch is a target
-- table: branched
-- view s: VALUES (1, 'x'), (4, 'y') AS s(id, v)
MERGE INTO db.t.branch_b AS t USING s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 1, inserted 1
-- rows:
--   id | v
--   1 | a
--   2 | b
--   3 | c
--   4 | main only
-- rows db.t.branch_b:
--   id | v
--   1 | x
--   2 | b
--   3 | c
--   4 | y

-- case: the main branch is merged into a branch
-- table: branched
MERGE INTO db.t.branch_b AS t USING db.t AS s ON t.id = s.id
WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *;
-- counts: deleted 3, inserted 1
-- rows:
--   id | v
--   1 | a
--   2 | b
--   3 | c
--   4 | main only
-- rows db.t.branch_b:
--   id | v
--   4 | main only

-- case: MERGE into a view of the session is refused
-- table: two
-- view few: VALUES (1, 'x'), (9, 'y') AS few(id, w)
MERGE INTO few USING db.t AS s ON few.id = s.id WHEN MATCHED THEN DELETE;
-- error: InvalidStatementError

-- case: MERGE into a table of Spark's own catalog is refused
-- table: two
CREATE TABLE IF NOT EXISTS spark_catalog.default.words_of_spark USING parquet AS SELECT 9 AS id, 'y' AS w;
MERGE INTO spark_catalog.default.words_of_spark AS w USING db.t AS s ON w.id = s.id WHEN MATCHED THEN DELETE;
-- error: InvalidStatementError
