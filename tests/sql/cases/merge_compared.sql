-- case: only newer rows update
-- table: days
-- view s: VALUES (1, TIMESTAMP '2024-01-01 11:00:00'), (2, TIMESTAMP '2024-01-01 00:00:00'), (3, NULL), (5, TIMESTAMP '2024-01-01 00:00:00') AS s(id, at)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED AND t.at < s.at THEN UPDATE SET at = s.at, day = NULL;
-- counts: updated 1
-- rows:
--   id | at | local | day
--   1 | 2024-01-01 11:00:00Z | 2024-01-01 10:00:00 | null
--   2 | 2024-01-01 23:59:59.999999Z | 2024-01-01 23:59:59 | 2024-01-01
--   3 | 2024-01-02 00:00:00Z | 2024-01-02 00:00:00 | 2024-01-02
--   4 | 1969-12-31 23:59:59Z | 1969-12-31 23:59:59 | 1969-12-31
--   5 | null | null | null

-- case: comparisons of both sides pick the clause
-- table: plain
-- view s: VALUES (1, 10), (2, 19), (3, 31), (4, NULL), (9, 0) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED AND s.a = t.a THEN DELETE
WHEN MATCHED AND s.a > t.a AND t.b > 0 AND s.a < 100 THEN UPDATE SET b = s.a
WHEN MATCHED AND t.a >= s.a THEN UPDATE SET a = s.a
WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, s.a);
-- counts: updated 2, deleted 1, inserted 1
-- rows:
--   id | a | b
--   2 | 19 | 200
--   3 | 30 | 31
--   4 | 40 | 400
--   9 | 0 | null

-- case: null-safe comparisons of both sides
-- table: keyed_nulls
-- view s: VALUES (1, 'a'), (2, NULL), (3, NULL) AS s(k, v)
MERGE INTO db.t USING s ON t.k = s.k WHEN MATCHED AND t.v <=> s.v THEN DELETE;
-- counts: deleted 2
-- rows:
--   k | v
--   3 | c
--   null | n1
--   null | n2

-- case: nulls are not unequal
-- table: people
-- view s: VALUES (1, 'ann'), (2, 'rob'), (5, 'x'), (6, NULL) AS s(id, name)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED AND t.name <> s.name THEN UPDATE SET name = s.name;
-- counts: updated 1
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | rob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: texts compare by their bytes
-- table: people
-- view s: VALUES (1, 'Ann'), (3, 'cid '), (4, 'dän'), (6, 'F') AS s(id, name)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED AND t.name < s.name THEN UPDATE SET city = s.name;
-- counts: updated 2
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | 'cid '
--   4 | dan | 40 | dän
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: decimals of one type compare, and those of others
-- table: stores
-- view s: VALUES (1, CAST(10.00 AS decimal(9, 2)), 9.999), (2, CAST(20.51 AS decimal(9, 2)), 20.5), (3, NULL, 31) AS s(id, x, y)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED AND t.amount < s.x THEN UPDATE SET note = 'less'
WHEN MATCHED AND t.amount > s.y THEN UPDATE SET note = 'more'
WHEN MATCHED AND t.amount <= s.y THEN DELETE;
-- counts: updated 2, deleted 1
-- rows:
--   id | store | amount | note
--   1 | 1 | 10.00 | more
--   2 | 1 | 20.50 | less
--   4 | 2 | 40.25 | d
--   5 | 1 | 50.00 | e
--   6 | 3 | 60.00 | f
--   7 | null | 70.00 | g

-- case: NaN and zeros compare as Spark has it
-- table: doubles
-- view s: VALUES (1, double('NaN')), (2, double('NaN')), (3, 0.0D), (5, 1D) AS s(id, d)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED AND t.d = s.d THEN UPDATE SET f = 100
WHEN MATCHED AND t.d < s.d THEN UPDATE SET f = -100;
-- counts: updated 3
-- rows:
--   id | d | f
--   1 | 1.5 | -100.0
--   2 | NaN | 100.0
--   3 | -0.0 | 100.0
--   4 | 0.0 | 0.0
--   5 | inf | -inf
--   6 | null | null

-- case: other types are compared as Spark casts them
-- table: days
-- view s: VALUES (1, DATE '2024-01-01', '2024-01-02'), (3, DATE '2024-01-03', 'x'), (4, NULL, NULL) AS s(id, at, day)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED AND t.at > s.at THEN DELETE;
-- counts: deleted 1
-- rows:
--   id | at | local | day
--   2 | 2024-01-01 23:59:59.999999Z | 2024-01-01 23:59:59 | 2024-01-01
--   3 | 2024-01-02 00:00:00Z | 2024-01-02 00:00:00 | 2024-01-02
--   4 | 1969-12-31 23:59:59Z | 1969-12-31 23:59:59 | 1969-12-31
--   5 | null | null | null

-- case: an expression of the source is compared
-- table: plain
-- view s: VALUES (1, 5), (2, 11), (3, NULL) AS s(id, half)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED AND t.a < s.half * 2 THEN UPDATE SET a = s.half * 2
WHEN MATCHED AND t.a >= coalesce(s.half, 0) THEN DELETE;
-- counts: updated 1, deleted 2
-- rows:
--   id | a | b
--   2 | 22 | 200
--   4 | 40 | 400

-- case: an expression that overflows only where no row is
-- table: plain
-- view s: VALUES (1, 2), (99, 2147483647) AS s(id, n)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED AND t.a > s.n + 1 THEN DELETE;
-- counts: deleted 1
-- rows:
--   id | a | b
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: an OR beside an equality is no key
-- table: flags
-- view s: VALUES (1, true, false), (2, false, true) AS s(id, yes, no)
MERGE INTO db.t USING s ON t.flag = s.yes OR s.no AND t.id = 5 WHEN MATCHED THEN UPDATE SET v = s.id;
-- counts: updated 3
-- rows:
--   id | flag | v
--   1 | true | 1
--   2 | false | 2
--   3 | null | 0
--   5 | false | 2

-- case: IS NULL after an equality is about all of it
-- table: flags
-- view s: VALUES (1, true) AS s(id, yes)
MERGE INTO db.t USING s ON t.flag = s.yes IS NULL WHEN MATCHED THEN UPDATE SET v = s.id;
-- counts: updated 1
-- rows:
--   id | flag | v
--   1 | true | 0
--   2 | false | 0
--   3 | null | 1
--   5 | false | 0

-- case: OR, NOT and BETWEEN beside comparisons are left to Spark
-- table: plain
-- view s: VALUES (1, 9, 99), (2, 21, 0), (3, 30, 300), (4, 41, 401) AS s(id, a, b)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED AND t.a < s.a AND (t.b < s.b OR s.b = 0) THEN UPDATE SET b = s.b
WHEN MATCHED AND NOT t.a > s.a THEN UPDATE SET a = 0
WHEN MATCHED AND t.b BETWEEN s.b AND s.b + 1 THEN DELETE;
-- counts: updated 3, deleted 1
-- rows:
--   id | a | b
--   2 | 20 | 0
--   3 | 0 | 300
--   4 | 40 | 401

-- case: two source rows for one row are refused whatever is compared
-- table: plain
-- view s: VALUES (1, 9), (1, 99) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED AND t.a < s.a THEN UPDATE SET a = s.a;
-- error: CardinalityError
