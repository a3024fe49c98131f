-- case: schema evolution adds a column of the source
-- table: two
-- view s: VALUES (2, 'TWO', 20), (9, 'NINE', 90) AS s(id, v, n)
MERGE WITH SCHEMA EVOLUTION INTO db.t USING s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 1, inserted 1
-- rows:
--   id | v | n
--   1 | one | null
--   2 | TWO | 20
--   3 | three | null
--   4 | four | null
--   5 | five | null
--   9 | NINE | 90

-- case: schema evolution adds nothing where the source has nothing new
-- table: two
-- view s: VALUES (2, 'TWO'), (9, 'NINE') AS s(id, v)
MERGE WITH SCHEMA EVOLUTION INTO db.t USING s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 1, inserted 1
-- rows:
--   id | v
--   1 | one
--   2 | TWO
--   3 | three
--   4 | four
--   5 | five
--   9 | NINE

-- case: schema evolution lets stars leave out columns that the source lacks
-- table: people
-- view s: VALUES (1L, 'x', true), (9L, 'y', false) AS s(id, name, more)
MERGE WITH SCHEMA EVOLUTION INTO db.t USING s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 1, inserted 1
-- rows:
--   id | name | age | city | more
--   1 | x | 30 | oslo | true
--   2 | bob | null | rome | null
--   3 | cid | 50 | null | null
--   4 | dan | 40 | oslo | null
--   5 | null | 20 | rome | null
--   6 | eve | 60 | bern | null
--   9 | y | null | null | false

-- case: schema evolution widens a number
-- table: plain
-- view s: VALUES (1, 3000000000, 7), (9, 1, 2) AS s(id, a, b)
MERGE WITH SCHEMA EVOLUTION INTO db.t USING s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 1, inserted 1
-- rows:
--   id | a | b
--   1 | 3000000000 | 7
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400
--   9 | 1 | 2

-- case: schema evolution does not make a text a number
-- table: plain
-- view s: VALUES (1, 'x', 7) AS s(id, a, b)
MERGE WITH SCHEMA EVOLUTION INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- error: SchemaMismatchError

-- case: schema evolution sets a named column that is new
-- table: two
-- view s: VALUES (2, 'TWO', 20), (9, 'NINE', 90) AS s(id, v, n)
MERGE WITH SCHEMA EVOLUTION INTO db.t USING s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n);
-- counts: updated 1, inserted 1
-- rows:
--   id | v | n
--   1 | one | null
--   2 | two | 20
--   3 | three | null
--   4 | four | null
--   5 | five | null
--   9 | null | 90

-- case: schema evolution adds no column that no clause assigns
-- table: two
-- view s: VALUES (2, 'TWO', 20) AS s(id, v, n)
MERGE WITH SCHEMA EVOLUTION INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v;
-- counts: updated 1
-- rows:
--   id | v
--   1 | one
--   2 | TWO
--   3 | three
--   4 | four
--   5 | five

-- case: schema evolution adds a field of a struct
-- table: nested
-- view s: VALUES (1, named_struct('a', 11, 'b', 'B', 'in', named_struct('x', 5, 'y', 5.5D), 'c', 'new'), array('t'), map('k', 9)) AS s(id, s, tags, m)
MERGE WITH SCHEMA EVOLUTION INTO db.t AS t USING s AS x ON t.id = x.id WHEN MATCHED THEN UPDATE SET *;
-- counts: updated 1
-- rows:
--   id | s | tags | m
--   1 | {a: 11, b: B, in: {x: 5, y: 5.5}, c: new} | [t] | [k -> 9]
--   2 | {a: 20, b: null, in: null, c: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}, c: null} | [null, q] | []

-- case: schema evolution needs its words
-- table: two
-- view s: VALUES (2, 'TWO', 20) AS s(id, v, n)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n;
-- error: InvalidStatementError

-- case: fields that a source struct lacks are kept by UPDATE SET * and null in INSERT *
-- table: three_fields
-- view s: VALUES (1, named_struct('a', -1)), (2, named_struct('a', -2)), (3, named_struct('a', -3)), (4, named_struct('a', -4)) AS s(id, s)
-- set: spark.sql.mergeNestedTypeCoercion.enabled = true
MERGE WITH SCHEMA EVOLUTION INTO db.t AS t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 3, inserted 1
-- rows:
--   id | s
--   1 | {a: -1, b: one, in: {x: 1, y: 2}}
--   2 | {a: -2, b: two, in: null}
--   3 | {a: -3, b: null, in: null}
--   4 | {a: -4, b: null, in: null}

-- case: fields that a nested source struct lacks are kept too
-- table: three_fields
-- view s: VALUES (1, named_struct('in', named_struct('y', -1), 'b', 'new')), (2, named_struct('in', named_struct('y', -2), 'b', 'new')) AS s(id, s)
-- set: spark.sql.mergeNestedTypeCoercion.enabled = true
MERGE WITH SCHEMA EVOLUTION INTO db.t AS t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 2
-- rows:
--   id | s
--   1 | {a: 10, b: new, in: {x: 1, y: -1}}
--   2 | {a: 20, b: new, in: {x: null, y: -2}}
--   3 | null

-- case: a null source struct sets the fields of its type and keeps the others
-- table: three_fields
-- view s: VALUES (1, named_struct('a', -1)), (2, NULL), (3, NULL) AS s(id, s)
-- set: spark.sql.mergeNestedTypeCoercion.enabled = true
MERGE WITH SCHEMA EVOLUTION INTO db.t AS t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- counts: updated 3
-- rows:
--   id | s
--   1 | {a: -1, b: one, in: {x: 1, y: 2}}
--   2 | {a: null, b: two, in: null}
--   3 | null

-- case: a struct that lacks fields of the column is refused where it is set by name
-- table: three_fields
-- view s: VALUES (1, named_struct('a', -1)) AS s(id, s)
MERGE WITH SCHEMA EVOLUTION INTO db.t AS t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.s = s.s;
-- error: SchemaMismatchError

-- case: a struct that lacks fields of the column is refused without schema evolution
-- table: three_fields
-- view s: VALUES (1, named_struct('a', -1)) AS s(id, s)
MERGE INTO db.t AS t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- error: SchemaMismatchError

-- case: a table property turns schema evolution off
-- table: two
-- view s: VALUES (1, 'uno', 10), (9, 'nueve', 90) AS s(id, v, x)
ALTER TABLE db.t SET TBLPROPERTIES ('write.spark.auto-schema-evolution.enabled' = 'false');
MERGE WITH SCHEMA EVOLUTION INTO db.t AS t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 1, inserted 1
-- rows:
--   id | v
--   1 | uno
--   2 | two
--   3 | three
--   4 | four
--   5 | five
--   9 | nueve

-- case: without schema evolution a source must have every column for a star
-- table: two
-- view s: VALUES (1), (9) AS s(id)
ALTER TABLE db.t SET TBLPROPERTIES ('write.spark.auto-schema-evolution.enabled' = 'false');
MERGE WITH SCHEMA EVOLUTION INTO db.t AS t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- error: InvalidStatementError
