-- case: two source rows cannot update one target row
-- table: two
-- view s: VALUES (1, 'a'), (1, 'b') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- error: CardinalityError

-- case: equal source rows cannot update one target row either
-- table: two
-- view s: VALUES (1, 'a'), (1, 'a') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- error: CardinalityError

-- case: two source rows cannot delete one target row under a condition
-- table: two
-- view s: VALUES (1, 'a'), (1, 'b') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED AND s.v >= 'a' THEN DELETE;
-- error: CardinalityError

-- case: two source rows may delete one target row without a condition
-- table: two
-- view s: VALUES (1, 'a'), (1, 'b'), (2, 'c') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN DELETE;
-- counts: deleted 2
-- rows:
--   id | v
--   3 | three
--   4 | four
--   5 | five

-- case: an unconditional delete allows doubles beside inserts
-- table: two
-- view s: VALUES (1, 'a'), (1, 'b'), (9, 'c'), (9, 'd') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *;
-- counts: deleted 1, inserted 2
-- rows:
--   id | v
--   2 | two
--   3 | three
--   4 | four
--   5 | five
--   9 | c
--   9 | d

-- case: an unconditional delete allows doubles beside clauses of rows that the source lacks
-- table: two
-- view s: VALUES (1, 'a'), (1, 'b') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.id > 4 THEN DELETE;
-- counts: deleted 2
-- rows:
--   id | v
--   2 | two
--   3 | three
--   4 | four

-- case: doubles are refused where a second source row matches under no clause
-- table: two
-- view s: VALUES (1, 'a'), (1, 'b') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED AND s.v = 'a' THEN UPDATE SET *;
-- error: CardinalityError

-- case: doubles are refused even where no clause takes them
-- table: two
-- view s: VALUES (1, 'a'), (1, 'b') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED AND s.v = 'z' THEN UPDATE SET *;
-- error: CardinalityError

-- case: doubles are refused where a condition can be answered without rows
-- table: two
-- view s: VALUES (1, 'a'), (1, 'b') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED AND false THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- error: CardinalityError

-- case: doubles that match nothing are all inserted
-- table: two
-- view s: VALUES (8, 'a'), (8, 'b'), (8, 'b') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: inserted 3
-- rows:
--   id | v
--   1 | one
--   2 | two
--   3 | three
--   4 | four
--   5 | five
--   8 | a
--   8 | b
--   8 | b

-- case: doubles that match do not matter to inserts alone
-- table: two
-- view s: VALUES (1, 'a'), (1, 'b'), (8, 'c'), (8, 'd') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
-- counts: inserted 2
-- rows:
--   id | v
--   1 | one
--   2 | two
--   3 | three
--   4 | four
--   5 | five
--   8 | c
--   8 | d

-- case: doubles that match do not matter to rows that the source lacks
-- table: two
-- view s: VALUES (1, 'a'), (1, 'b') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE;
-- java: copy-on-write keeps a row once for each of its matches
-- counts: deleted 4
-- rows:
--   id | v
--   1 | one

-- case: one source row may update several target rows
-- table: doubled
-- view s: VALUES (1, 'x'), (2, 'y') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 4
-- rows:
--   id | v
--   1 | x
--   1 | x
--   2 | y
--   2 | y
--   3 | d

-- case: one source row may delete several target rows
-- table: doubled
-- view s: VALUES (1, 'x'), (2, 'y') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED AND s.id = 2 THEN DELETE;
-- counts: deleted 2
-- rows:
--   id | v
--   1 | a
--   1 | b
--   3 | d

-- case: two source rows cannot update one target row by a range
-- table: plain
-- view s: VALUES (0, 100), (15, 25) AS s(low, high)
MERGE INTO db.t USING s ON t.a > s.low AND t.a < s.high WHEN MATCHED THEN UPDATE SET b = s.low;
-- error: CardinalityError

-- case: doubles of null keys are refused with null-safe equality
-- table: keyed_nulls
-- view s: VALUES (NULL, 'x'), (NULL, 'y') AS s(k, v)
MERGE INTO db.t USING s ON t.k <=> s.k WHEN MATCHED THEN UPDATE SET *;
-- error: CardinalityError

-- case: doubles of null keys never match with equality
-- table: keyed_nulls
-- view s: VALUES (NULL, 'x'), (NULL, 'y') AS s(k, v)
MERGE INTO db.t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: inserted 2
-- rows:
--   k | v
--   1 | a
--   2 | null
--   3 | c
--   null | n1
--   null | n2
--   null | x
--   null | y

-- case: doubles are told apart by a source condition in ON
-- table: two
-- view s: VALUES (1, 'a'), (1, 'b') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id AND s.v = 'b' WHEN MATCHED THEN UPDATE SET *;
-- counts: updated 1
-- rows:
--   id | v
--   1 | b
--   2 | two
--   3 | three
--   4 | four
--   5 | five
