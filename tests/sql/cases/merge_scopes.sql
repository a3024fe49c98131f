-- case: an INSERT condition cannot name a column that only the target has
-- table: plain
-- view s: VALUES (9, 90) AS s(id, x)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED AND b IS NULL THEN INSERT (id, a) VALUES (s.id, x);
-- error: InvalidStatementError

-- case: an INSERT value cannot name a column that only the target has
-- table: plain
-- view s: VALUES (9, 90) AS s(id, x)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, a, b) VALUES (s.id, x, b);
-- error: InvalidStatementError

-- case: an expression of a column that only the target has is refused too
-- table: plain
-- view s: VALUES (9, 90) AS s(id, x)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, coalesce(b, x));
-- error: InvalidStatementError

-- case: the full name of the target in an INSERT condition is refused
-- table: plain
-- view s: VALUES (9, 90) AS s(id, x)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED AND db.t.b IS NULL THEN INSERT (id) VALUES (s.id);
-- error: InvalidStatementError

-- case: a NOT MATCHED BY SOURCE condition cannot name a column that only the source has
-- table: plain
-- view s: VALUES (1, 90) AS s(id, x)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND x IS NULL THEN DELETE;
-- error: InvalidStatementError

-- case: a NOT MATCHED BY SOURCE value cannot name a column that only the source has
-- table: plain
-- view s: VALUES (1, 90) AS s(id, x)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = x;
-- error: InvalidStatementError

-- case: words that look like a column of the target mean what they are
-- table: plain
-- view s: VALUES (9, array(1, 2)) AS s(id, xs)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED AND exists(xs, b -> b = 2) THEN INSERT (id, a) VALUES (s.id, aggregate(xs, 0, (a, b) -> a + b));
-- counts: inserted 1
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400
--   9 | 3 | null
