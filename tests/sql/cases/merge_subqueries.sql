-- case: IN a subquery in a matched condition
-- table: two
-- view s: VALUES (1, 'a'), (2, 'b'), (9, 'c') AS s(id, v)
-- view picked: VALUES (1), (9) AS picked(id)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED AND s.id IN (SELECT id FROM picked) THEN UPDATE SET *;
-- java: Spark refuses subqueries in conditions of MERGE
-- counts: updated 1
-- rows:
--   id | v
--   1 | a
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: IN a subquery in an insert condition
-- table: two
-- view s: VALUES (1, 'a'), (8, 'b'), (9, 'c') AS s(id, v)
-- view picked: VALUES (1), (9) AS picked(id)
MERGE INTO db.t USING s ON t.id = s.id
WHEN NOT MATCHED AND s.id IN (SELECT id FROM picked) THEN INSERT *;
-- java: Spark refuses subqueries in conditions of MERGE
-- counts: inserted 1
-- rows:
--   id | v
--   1 | one
--   2 | two
--   3 | three
--   4 | four
--   5 | five
--   9 | c

-- case: EXISTS in a condition of rows that the source lacks
-- table: two
-- view s: VALUES (1, 'a') AS s(id, v)
-- view picked: VALUES (1), (4) AS picked(id)
MERGE INTO db.t USING s ON t.id = s.id
WHEN NOT MATCHED BY SOURCE AND EXISTS (SELECT 1 FROM picked p WHERE p.id = t.id) THEN DELETE;
-- java: Spark refuses subqueries in conditions of MERGE
-- counts: deleted 1
-- rows:
--   id | v
--   1 | one
--   2 | two
--   3 | three
--   5 | five

-- case: a scalar subquery in a matched condition
-- table: two
-- view s: VALUES (1, 'a'), (2, 'b') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED AND t.id = (SELECT min(id) FROM db.t) THEN DELETE;
-- java: Spark refuses subqueries in conditions of MERGE
-- counts: deleted 1
-- rows:
--   id | v
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: a scalar subquery as a value
-- table: plain
-- view s: VALUES (1, 5), (9, 6) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET a = (SELECT max(b) FROM db.t) WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, (SELECT count(*) FROM db.t));
-- counts: updated 1, inserted 1
-- rows:
--   id | a | b
--   1 | 400 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400
--   9 | 4 | null

-- case: a subquery in ON
-- table: two
-- view s: VALUES (1, 'a'), (2, 'b') AS s(id, v)
-- view picked: VALUES (1), (9) AS picked(id)
MERGE INTO db.t USING s ON t.id = s.id AND t.id IN (SELECT id FROM picked)
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- java: Spark refuses subqueries in conditions of MERGE
-- counts: updated 1, inserted 1
-- rows:
--   id | v
--   1 | a
--   2 | b
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: a scalar subquery in ON
-- table: plain
-- view s: VALUES (1, 5) AS s(id, a)
MERGE INTO db.t USING s ON t.id = (SELECT max(id) FROM db.t) WHEN MATCHED THEN UPDATE SET a = s.a;
-- java: Spark refuses subqueries in conditions of MERGE
-- counts: updated 1
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 5 | 400

-- case: random numbers in a clause's condition are refused
-- table: plain
-- view s: VALUES (1, 5) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED AND rand() < 2 THEN DELETE;
-- error: InvalidStatementError

-- case: an aggregate in a clause's condition is refused
-- table: plain
-- view s: VALUES (1, 5) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED AND max(s.a) > 1 THEN DELETE;
-- error: InvalidStatementError

-- case: a division by zero in a clause is an error
-- table: plain
-- view s: VALUES (1, 0) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = t.a div s.a;
-- error: InvalidStatementError

-- case: a clause before protects from an error in a later one
-- table: plain
-- view s: VALUES (1, 0), (2, 5) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED AND s.a = 0 THEN DELETE WHEN MATCHED AND 100 / s.a > 1 THEN UPDATE SET a = t.a div s.a;
-- counts: updated 1, deleted 1
-- rows:
--   id | a | b
--   2 | 4 | 200
--   3 | 30 | 300
--   4 | 40 | 400
