-- case: null keys match nothing and are inserted
-- table: keyed_nulls
-- view s: VALUES (1, 'A'), (NULL, 'N') AS s(k, v)
MERGE INTO db.t USING s ON t.k = s.k
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 1, inserted 1
-- rows:
--   k | v
--   1 | A
--   2 | null
--   3 | c
--   null | N
--   null | n1
--   null | n2

-- case: null keys of the target are what the source lacks
-- table: keyed_nulls
-- view s: VALUES (1, 'A'), (NULL, 'N') AS s(k, v)
MERGE INTO db.t USING s ON t.k = s.k WHEN NOT MATCHED BY SOURCE THEN DELETE;
-- counts: deleted 4
-- rows:
--   k | v
--   1 | a

-- case: null-safe equality matches null keys
-- table: keyed_nulls
-- view s: VALUES (1, 'A'), (NULL, 'N') AS s(k, v)
MERGE INTO db.t USING s ON t.k <=> s.k
WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 3
-- rows:
--   k | v
--   1 | A
--   2 | null
--   3 | c
--   null | N
--   null | N

-- case: NaN keys match each other
-- table: doubles
-- view s: VALUES (double('NaN'), 100), (1.5D, 101), (7D, 102) AS s(d, id)
MERGE INTO db.t USING s ON t.d = s.d
WHEN MATCHED THEN UPDATE SET id = s.id WHEN NOT MATCHED THEN INSERT (id, d) VALUES (s.id, s.d);
-- counts: updated 2, inserted 1
-- rows:
--   id | d | f
--   100 | NaN | NaN
--   101 | 1.5 | 1.5
--   102 | 7.0 | null
--   3 | -0.0 | -0.0
--   4 | 0.0 | 0.0
--   5 | inf | -inf
--   6 | null | null

-- case: a key of zero matches both zeros
-- table: doubles
-- view s: VALUES (0.0D, 100) AS s(d, id)
MERGE INTO db.t USING s ON t.d = s.d WHEN MATCHED THEN UPDATE SET id = s.id;
-- counts: updated 2
-- rows:
--   id | d | f
--   1 | 1.5 | 1.5
--   100 | -0.0 | -0.0
--   100 | 0.0 | 0.0
--   2 | NaN | NaN
--   5 | inf | -inf
--   6 | null | null

-- case: a key of minus zero matches both zeros and stays what it is
-- table: doubles
-- view s: VALUES (-0.0D, 100) AS s(d, id)
MERGE INTO db.t USING s ON t.d = s.d WHEN MATCHED THEN UPDATE SET id = s.id WHEN NOT MATCHED THEN INSERT (id, d) VALUES (s.id, s.d);
-- counts: updated 2
-- rows:
--   id | d | f
--   1 | 1.5 | 1.5
--   100 | -0.0 | -0.0
--   100 | 0.0 | 0.0
--   2 | NaN | NaN
--   5 | inf | -inf
--   6 | null | null

-- case: zeros of both signs in the source match twice
-- table: doubles
-- view s: VALUES (-0.0D, 100), (0.0D, 101) AS s(d, id)
MERGE INTO db.t USING s ON t.d = s.d WHEN MATCHED THEN UPDATE SET id = s.id;
-- error: CardinalityError

-- case: two keys must both be equal
-- table: plain
-- view s: VALUES (1, 10, -1), (2, 99, -2), (3, 30, -3) AS s(id, a, b)
MERGE INTO db.t USING s ON t.id = s.id AND t.a = s.a
WHEN MATCHED THEN UPDATE SET b = s.b WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 2, inserted 1
-- rows:
--   id | a | b
--   1 | 10 | -1
--   2 | 20 | 200
--   2 | 99 | -2
--   3 | 30 | -3
--   4 | 40 | 400

-- case: inequality joins
-- table: plain
-- view s: VALUES (25, 45) AS s(low, high)
MERGE INTO db.t USING s ON t.a BETWEEN s.low AND s.high WHEN MATCHED THEN UPDATE SET b = s.high WHEN NOT MATCHED THEN INSERT (id) VALUES (-1);
-- counts: updated 2
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 30 | 45
--   4 | 40 | 45

-- case: OR joins
-- table: plain
-- view s: VALUES (1, 20) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id OR t.a = s.a WHEN MATCHED THEN DELETE;
-- counts: deleted 2
-- rows:
--   id | a | b
--   3 | 30 | 300
--   4 | 40 | 400

-- case: expressions of keys join
-- table: plain
-- view s: VALUES (2, 'even'), (3, 'odd') AS s(half, v)
MERGE INTO db.t USING s ON t.id / 2 = s.half - 1 WHEN MATCHED THEN UPDATE SET a = 0 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.half * 100);
-- counts: updated 2
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 0 | 200
--   3 | 30 | 300
--   4 | 0 | 400

-- case: functions of keys join
-- table: two
-- view s: VALUES ('ONE', 'x'), ('SIX', 'y') AS s(v, w)
MERGE INTO db.t USING s ON upper(t.v) = s.v WHEN MATCHED THEN UPDATE SET v = s.w WHEN NOT MATCHED THEN INSERT (v) VALUES (s.w);
-- counts: updated 1, inserted 1
-- rows:
--   id | v
--   1 | x
--   2 | two
--   3 | three
--   4 | four
--   5 | five
--   null | y

-- case: keys of other types are cast to be compared
-- table: people
-- view s: VALUES ('1', 'text'), ('9', 'text') AS s(id, name)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name;
-- counts: updated 1
-- rows:
--   id | name | age | city
--   1 | text | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: an int key joins a long and a decimal
-- table: people
-- view s: VALUES (CAST(1 AS int), 2.0) AS s(id, other)
MERGE INTO db.t USING s ON t.id = s.id OR t.id = s.other WHEN MATCHED THEN UPDATE SET name = 'hit';
-- counts: updated 2
-- rows:
--   id | name | age | city
--   1 | hit | 30 | oslo
--   2 | hit | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: a target condition in ON makes other rows unmatched
-- table: stores
-- view s: VALUES (1, 'x'), (3, 'y') AS s(id, note)
MERGE INTO db.t USING s ON t.id = s.id AND t.store = 1
WHEN MATCHED THEN UPDATE SET note = s.note WHEN NOT MATCHED THEN INSERT (id, note) VALUES (s.id, s.note);
-- counts: updated 1, inserted 1
-- rows:
--   id | store | amount | note
--   1 | 1 | 10.00 | x
--   2 | 1 | 20.50 | null
--   3 | 2 | 30.00 | c
--   3 | null | null | y
--   4 | 2 | 40.25 | d
--   5 | 1 | 50.00 | e
--   6 | 3 | 60.00 | f
--   7 | null | 70.00 | g

-- case: a target condition in ON makes other rows ones that the source lacks
-- table: two
-- view s: VALUES (1, 'x'), (4, 'y') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id AND t.id < 3
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED BY SOURCE THEN DELETE;
-- counts: updated 1, deleted 4
-- rows:
--   id | v
--   1 | x

-- case: a source condition in ON makes its rows unmatched
-- table: two
-- view s: VALUES (1, 'x'), (2, 'skip') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id AND s.v <> 'skip'
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT (id, v) VALUES (-s.id, s.v);
-- counts: updated 1, inserted 1
-- rows:
--   id | v
--   -2 | skip
--   1 | x
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: ON FALSE inserts every source row
-- table: two
-- view s: VALUES (1, 'again'), (9, 'new') AS s(id, v)
MERGE INTO db.t USING s ON false WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *;
-- counts: inserted 2
-- rows:
--   id | v
--   1 | again
--   1 | one
--   2 | two
--   3 | three
--   4 | four
--   5 | five
--   9 | new

-- case: ON FALSE replaces all rows
-- table: two
-- view s: VALUES (1, 'again'), (9, 'new') AS s(id, v)
MERGE INTO db.t USING s ON false WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE;
-- counts: deleted 5, inserted 2
-- rows:
--   id | v
--   1 | again
--   9 | new

-- case: ON NULL matches nothing
-- table: two
-- view s: VALUES (1, 'again') AS s(id, v)
MERGE INTO db.t USING s ON CAST(NULL AS boolean) WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *;
-- counts: inserted 1
-- rows:
--   id | v
--   1 | again
--   1 | one
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: ON TRUE with one source row matches every row
-- table: two
-- view s: VALUES (1, 'all') AS s(id, v)
MERGE INTO db.t USING s ON true WHEN MATCHED THEN UPDATE SET v = s.v;
-- counts: updated 5
-- rows:
--   id | v
--   1 | all
--   2 | all
--   3 | all
--   4 | all
--   5 | all

-- case: ON TRUE with two source rows matches rows twice
-- table: two
-- view s: VALUES (1, 'all'), (2, 'all') AS s(id, v)
MERGE INTO db.t USING s ON true WHEN MATCHED THEN UPDATE SET v = s.v;
-- error: CardinalityError

-- case: ON with the source alone
-- table: two
-- view s: VALUES (1, 'x') AS s(id, v)
MERGE INTO db.t USING s ON s.id = 1 WHEN MATCHED AND t.id > 3 THEN UPDATE SET v = s.v;
-- counts: updated 2
-- rows:
--   id | v
--   1 | one
--   2 | two
--   3 | three
--   4 | x
--   5 | x

-- case: ON with the target alone
-- table: two
-- view s: VALUES (7, 'x') AS s(id, v)
MERGE INTO db.t USING s ON t.id > 3 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *;
-- counts: deleted 2
-- rows:
--   id | v
--   1 | one
--   2 | two
--   3 | three

-- case: a partition key in ON finds its partition
-- table: stores
-- view s: VALUES (1, 2, 'x'), (3, 2, 'y'), (6, 3, 'z') AS s(id, store, note)
MERGE INTO db.t USING s ON t.store = s.store AND t.id = s.id
WHEN MATCHED THEN UPDATE SET note = s.note WHEN NOT MATCHED THEN INSERT (id, store, note) VALUES (s.id, s.store, s.note);
-- counts: updated 2, inserted 1
-- rows:
--   id | store | amount | note
--   1 | 1 | 10.00 | a
--   1 | 2 | null | x
--   2 | 1 | 20.50 | null
--   3 | 2 | 30.00 | y
--   4 | 2 | 40.25 | d
--   5 | 1 | 50.00 | e
--   6 | 3 | 60.00 | z
--   7 | null | 70.00 | g

-- case: times of keys join
-- table: days
-- view s: VALUES (TIMESTAMP '2024-01-02 00:00:00', 30), (NULL, 31) AS s(at, id)
MERGE INTO db.t USING s ON t.at = s.at WHEN MATCHED THEN UPDATE SET id = s.id WHEN NOT MATCHED THEN INSERT (id, at) VALUES (s.id, s.at);
-- counts: updated 1, inserted 1
-- rows:
--   id | at | local | day
--   1 | 2024-01-01 10:00:00Z | 2024-01-01 10:00:00 | 2024-01-01
--   2 | 2024-01-01 23:59:59.999999Z | 2024-01-01 23:59:59 | 2024-01-01
--   30 | 2024-01-02 00:00:00Z | 2024-01-02 00:00:00 | 2024-01-02
--   31 | null | null | null
--   4 | 1969-12-31 23:59:59Z | 1969-12-31 23:59:59 | 1969-12-31
--   5 | null | null | null

-- case: decimals of other scales join
-- table: stores
-- view s: VALUES (20.500, 'x') AS s(amount, note)
MERGE INTO db.t USING s ON t.amount = s.amount WHEN MATCHED THEN UPDATE SET note = s.note;
-- counts: updated 1
-- rows:
--   id | store | amount | note
--   1 | 1 | 10.00 | a
--   2 | 1 | 20.50 | x
--   3 | 2 | 30.00 | c
--   4 | 2 | 40.25 | d
--   5 | 1 | 50.00 | e
--   6 | 3 | 60.00 | f
--   7 | null | 70.00 | g

-- case: a source named as a struct of the target leaves SET to the struct
-- table: nested
-- view s: VALUES (named_struct('key', 20), 'x') AS s(st, v)
MERGE INTO db.t USING s ON t.s.a = s.st.key WHEN MATCHED THEN UPDATE SET s.b = s.v;
-- counts: updated 1
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: x, in: {x: 1, y: 1.5}} | [p, q] | [k -> 1]
--   2 | {a: 20, b: x, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: nested fields of both sides join
-- table: nested
-- view src: VALUES (named_struct('key', 20), 'x') AS src(st, v)
MERGE INTO db.t USING src ON t.s.a = src.st.key WHEN MATCHED THEN UPDATE SET t.s.b = src.v;
-- counts: updated 1
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: x, in: {x: 1, y: 1.5}} | [p, q] | [k -> 1]
--   2 | {a: 20, b: x, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: structs join as a whole
-- table: nested
-- view src: VALUES (named_struct('x', 1, 'y', 1.5D)) AS src(in)
MERGE INTO db.t USING src ON t.s.in = src.in WHEN MATCHED THEN DELETE;
-- counts: deleted 1
-- rows:
--   id | s | tags | m
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: random numbers in ON are refused
-- table: two
-- view s: VALUES (1, 'x') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id AND rand() < 2 WHEN MATCHED THEN DELETE;
-- error: InvalidStatementError

-- case: ON that is no boolean is refused
-- table: two
-- view s: VALUES (1, 'x') AS s(id, v)
MERGE INTO db.t USING s ON t.id + s.id WHEN MATCHED THEN DELETE;
-- error: InvalidStatementError
