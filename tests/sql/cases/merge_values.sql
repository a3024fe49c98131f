-- case: a field of a struct is updated by the source
-- table: nested
-- view s: VALUES (1, 11), (3, 33) AS s(id, a)
MERGE INTO db.t AS t USING s AS x ON t.id = x.id WHEN MATCHED THEN UPDATE SET t.s.a = x.a;
-- counts: updated 2
-- rows:
--   id | s | tags | m
--   1 | {a: 11, b: x, in: {x: 1, y: 1.5}} | [p, q] | [k -> 1]
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | {a: 33, b: null, in: null} | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: fields of several levels are updated by the source
-- table: nested
-- view s: VALUES (1, 11), (2, 22) AS s(id, a)
MERGE INTO db.t AS t USING s AS x ON t.id = x.id WHEN MATCHED THEN UPDATE SET t.s.in.x = x.a, t.s.b = concat('b', x.id);
-- counts: updated 2
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: b1, in: {x: 11, y: 1.5}} | [p, q] | [k -> 1]
--   2 | {a: 20, b: b2, in: {x: 22, y: null}} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: structs of the source are taken by the names of their fields
-- table: nested
-- view s: VALUES (9, named_struct('b', 'w', 'in', named_struct('y', 3.0D, 'x', 2), 'a', 1)) AS s(id, st)
MERGE INTO db.t AS t USING s AS x ON t.id = x.id WHEN NOT MATCHED THEN INSERT (id, s) VALUES (x.id, x.st);
-- counts: inserted 1
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: x, in: {x: 1, y: 1.5}} | [p, q] | [k -> 1]
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []
--   9 | {a: 1, b: w, in: {x: 2, y: 3.0}} | null | null

-- case: a struct of the source that lacks a field is refused
-- table: nested
-- view s: VALUES (1, named_struct('a', 1)) AS s(id, st)
MERGE INTO db.t AS t USING s AS x ON t.id = x.id WHEN MATCHED THEN UPDATE SET t.s = x.st;
-- error: SchemaMismatchError

-- case: arrays and maps come from the source
-- table: nested
-- view s: VALUES (2, array('n'), map('z', 0)) AS s(id, tags, m)
MERGE INTO db.t AS t USING s AS x ON t.id = x.id WHEN MATCHED THEN UPDATE SET tags = x.tags, m = map_concat(t.m, x.m);
-- counts: updated 1
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: x, in: {x: 1, y: 1.5}} | [p, q] | [k -> 1]
--   2 | {a: 20, b: null, in: null} | [n] | [k -> 2, l -> 3, z -> 0]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: values are set from the target and inserted from the source
-- table: people
-- view s: VALUES (1, 5), (9, 6) AS s(id, more)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET age = t.age + s.more WHEN NOT MATCHED THEN INSERT (id, age) VALUES (s.id, s.more);
-- counts: updated 1, inserted 1
-- rows:
--   id | name | age | city
--   1 | ann | 35 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern
--   9 | null | 6 | null

-- case: DEFAULT in UPDATE of a merge is the column's default
-- table: defaults
-- view s: VALUES (1, 'x') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = DEFAULT, n = DEFAULT;
-- counts: updated 1
-- rows:
--   id | v | n
--   1 | none | 7
--   2 | b | null

-- case: DEFAULT in INSERT of a merge is the column's default
-- table: defaults
-- view s: VALUES (9, 'x') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v, n) VALUES (s.id, s.v, DEFAULT);
-- counts: inserted 1
-- rows:
--   id | v | n
--   1 | a | 1
--   2 | b | null
--   9 | x | 7

-- case: columns that an insert leaves out get their defaults
-- table: defaults
-- view s: VALUES (9, 'x') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id);
-- counts: inserted 1
-- rows:
--   id | v | n
--   1 | a | 1
--   2 | b | null
--   9 | none | 7

-- case: DEFAULT of a column without one is NULL in a merge
-- table: people
-- view s: VALUES (1, 'x'), (9, 'y') AS s(id, name)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET name = s.name, age = DEFAULT WHEN NOT MATCHED THEN INSERT (id, name, city) VALUES (s.id, s.name, DEFAULT);
-- counts: updated 1, inserted 1
-- rows:
--   id | name | age | city
--   1 | x | null | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern
--   9 | y | null | null

-- case: rows move to another partition by a merge
-- table: stores
-- view s: VALUES (1, 3), (7, 1), (8, NULL) AS s(id, store)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET store = s.store WHEN NOT MATCHED THEN INSERT (id, store) VALUES (s.id, s.store);
-- counts: updated 2, inserted 1
-- rows:
--   id | store | amount | note
--   1 | 3 | 10.00 | a
--   2 | 1 | 20.50 | null
--   3 | 2 | 30.00 | c
--   4 | 2 | 40.25 | d
--   5 | 1 | 50.00 | e
--   6 | 3 | 60.00 | f
--   7 | 1 | 70.00 | g
--   8 | null | null | null

-- case: buckets take updates and inserts
-- table: bucketed
-- view s: VALUES (1, 'A'), (8, 'H'), (100, 'new') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED AND s.id = 8 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 1, deleted 1, inserted 1
-- rows:
--   id | v
--   1 | A
--   100 | new
--   2 | b
--   3 | c
--   4 | d
--   5 | e
--   6 | f
--   7 | g

-- case: rows of several partition specs take part in a merge
-- table: evolved
-- view s: VALUES (1, 'x', 1, 11), (3, 'y', 2, 22), (5, 'z', 3, 33) AS s(id, w, p, extra)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.extra IS NULL THEN DELETE;
-- counts: updated 2, deleted 2, inserted 1
-- rows:
--   id | w | p | extra
--   1 | x | 1 | 11
--   3 | y | 2 | 22
--   5 | z | 3 | 33

-- case: values of every type come from the source
-- table: types
-- view s: VALUES (3, true, 5, 0.5F, 0.25D, 12.34, 'new', X'ff', DATE '2030-01-01', TIMESTAMP '2030-01-01 00:00:00') AS s(id, b, l, f, d, dec, s, bin, dt, ts)
MERGE INTO db.t AS t USING s AS x ON t.id = x.id WHEN MATCHED THEN UPDATE SET *;
-- counts: updated 1
-- rows:
--   id | b | l | f | d | dec | s | bin | dt | ts
--   1 | true | 100 | 1.5 | 2.5 | 1.25 | one | x'0102' | 2024-02-29 | 2024-02-29 12:00:00Z
--   2 | false | -1 | -1.5 | 10000000000.0 | -99.99 | '' | x'' | 1970-01-01 | 1970-01-01 00:00:00Z
--   3 | true | 5 | 0.5 | 0.25 | 12.34 | new | x'ff' | 2030-01-01 | 2030-01-01 00:00:00Z

-- case: odd names are merged
-- table: odd_names
-- view s: VALUES (1, 'P', 11, 111, 'S1'), (9, 'Z', 99, 999, 'S9') AS s(`Id`, `a b`, `x.y`, `größe`, `select`)
MERGE INTO db.t USING s ON t.Id = s.Id WHEN MATCHED THEN UPDATE SET `x.y` = s.`größe`, `a b` = s.`select` WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 1, inserted 1
-- rows:
--   Id | a b | x.y | größe | select
--   1 | S1 | 111 | 100 | s1
--   2 | q | 20 | 200 | s2
--   3 | r | 30 | 300 | s3
--   9 | Z | 99 | 999 | S9

-- case: an update of a merge sets a column once
-- table: plain
-- view s: VALUES (1, 5) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = 1, a = 2;
-- error: InvalidStatementError

-- case: an insert of a merge names a column once
-- table: plain
-- view s: VALUES (9, 5) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, a, a) VALUES (s.id, 1, 2);
-- error: InvalidStatementError

-- case: an insert has as many values as columns
-- table: plain
-- view s: VALUES (9, 5) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id);
-- error: InvalidStatementError

-- case: an insert cannot name a field of a struct
-- table: nested
-- view s: VALUES (9, 5) AS s(id, a)
MERGE INTO db.t AS t USING s AS x ON t.id = x.id WHEN NOT MATCHED THEN INSERT (id, s.a) VALUES (x.id, x.a);
-- error: InvalidStatementError

-- case: an unknown column of the target is refused
-- table: plain
-- view s: VALUES (1, 5) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nothing = 1;
-- error: InvalidStatementError

-- case: an unknown column to insert is refused
-- table: plain
-- view s: VALUES (9, 5) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, nothing) VALUES (1, 2);
-- error: InvalidStatementError

-- case: an unknown column of the source is refused
-- table: plain
-- view s: VALUES (1, 5) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = s.nothing;
-- error: InvalidStatementError

-- case: an unknown column in ON is refused
-- table: plain
-- view s: VALUES (1, 5) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.nothing WHEN MATCHED THEN DELETE;
-- error: InvalidStatementError

-- case: a column of both sides in ON is ambiguous
-- table: plain
-- view s: VALUES (1, 5) AS s(id, a)
MERGE INTO db.t USING s ON id = 1 WHEN MATCHED THEN DELETE;
-- error: InvalidStatementError

-- case: a column of both sides in a value is ambiguous
-- table: plain
-- view s: VALUES (1, 5) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET b = a;
-- error: InvalidStatementError

-- case: the column to set is the target's even where both have it
-- table: plain
-- view s: VALUES (1, 5) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = s.a;
-- counts: updated 1
-- rows:
--   id | a | b
--   1 | 5 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: a column of one side needs no qualifier
-- table: plain
-- view s: VALUES (1, 5) AS s(sid, sa)
MERGE INTO db.t USING s ON id = sid WHEN MATCHED THEN UPDATE SET a = sa + b WHEN NOT MATCHED THEN INSERT (id, a) VALUES (sid, sa);
-- counts: updated 1
-- rows:
--   id | a | b
--   1 | 105 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: inserted values see the source without a qualifier
-- table: plain
-- view s: VALUES (9, 5) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED AND a = 5 THEN INSERT (id, a) VALUES (id, a + 1);
-- counts: inserted 1
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400
--   9 | 6 | null

-- case: clauses of rows that the source lacks see the target without a qualifier
-- table: plain
-- view s: VALUES (1, 5) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND a > 35 THEN UPDATE SET b = a + id;
-- counts: updated 1
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 44

-- case: the source's column cannot be set
-- table: plain
-- view s: VALUES (1, 5) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET s.a = 1;
-- error: InvalidStatementError
