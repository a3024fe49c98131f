-- case: NaN equals NaN
-- table: doubles
DELETE FROM db.t WHERE d = double('NaN');
-- counts: deleted 1
-- rows:
--   id | d | f
--   1 | 1.5 | 1.5
--   3 | -0.0 | -0.0
--   4 | 0.0 | 0.0
--   5 | inf | -inf
--   6 | null | null

-- case: NaN is greater than infinity
-- table: doubles
DELETE FROM db.t WHERE d > double('Infinity');
-- java: it leaves NaN, since bounds of files do not tell of it
-- counts: deleted 1
-- rows:
--   id | d | f
--   1 | 1.5 | 1.5
--   3 | -0.0 | -0.0
--   4 | 0.0 | 0.0
--   5 | inf | -inf
--   6 | null | null

-- case: isnan finds NaN and not NULL
-- table: doubles
DELETE FROM db.t WHERE isnan(f);
-- counts: deleted 1
-- rows:
--   id | d | f
--   1 | 1.5 | 1.5
--   3 | -0.0 | -0.0
--   4 | 0.0 | 0.0
--   5 | inf | -inf
--   6 | null | null

-- case: a minimum of NaN is not below all
-- table: doubles
DELETE FROM db.t WHERE d <= 1.5;
-- counts: deleted 3
-- rows:
--   id | d | f
--   2 | NaN | NaN
--   5 | inf | -inf
--   6 | null | null

-- case: both zeros are zero
-- table: doubles
DELETE FROM db.t WHERE d = 0;
-- counts: deleted 2
-- rows:
--   id | d | f
--   1 | 1.5 | 1.5
--   2 | NaN | NaN
--   5 | inf | -inf
--   6 | null | null

-- case: minus zero is both zeros as well
-- table: doubles
DELETE FROM db.t WHERE f = float('-0.0');
-- counts: deleted 2
-- rows:
--   id | d | f
--   1 | 1.5 | 1.5
--   2 | NaN | NaN
--   5 | inf | -inf
--   6 | null | null

-- case: zero is not greater than minus zero
-- table: doubles
DELETE FROM db.t WHERE d > -0.0D AND d < 1;
-- counts: none
-- rows:
--   id | d | f
--   1 | 1.5 | 1.5
--   2 | NaN | NaN
--   3 | -0.0 | -0.0
--   4 | 0.0 | 0.0
--   5 | inf | -inf
--   6 | null | null

-- case: inequality with a number finds NaN
-- table: doubles
DELETE FROM db.t WHERE d <> 1.5;
-- counts: deleted 4
-- rows:
--   id | d | f
--   1 | 1.5 | 1.5
--   6 | null | null

-- case: NOT IN with NaN keeps NaN
-- table: doubles
DELETE FROM db.t WHERE d NOT IN (double('NaN'), 0.0D);
-- java: it cannot push a list with NaN down
-- counts: deleted 2
-- rows:
--   id | d | f
--   2 | NaN | NaN
--   3 | -0.0 | -0.0
--   4 | 0.0 | 0.0
--   6 | null | null

-- case: a time stamp decides at its microsecond
-- table: days
DELETE FROM db.t WHERE at >= TIMESTAMP '2024-01-01 23:59:59.999999';
-- counts: deleted 2
-- rows:
--   id | at | local | day
--   1 | 2024-01-01 10:00:00Z | 2024-01-01 10:00:00 | 2024-01-01
--   4 | 1969-12-31 23:59:59Z | 1969-12-31 23:59:59 | 1969-12-31
--   5 | null | null | null

-- case: a time stamp is compared with a date
-- table: days
DELETE FROM db.t WHERE at < DATE '2024-01-02';
-- java: it removes the partition of nulls too
-- counts: deleted 3
-- rows:
--   id | at | local | day
--   3 | 2024-01-02 00:00:00Z | 2024-01-02 00:00:00 | 2024-01-02
--   5 | null | null | null

-- case: a time stamp is compared with a text
-- table: days
DELETE FROM db.t WHERE at = '2024-01-02';
-- counts: deleted 1
-- rows:
--   id | at | local | day
--   1 | 2024-01-01 10:00:00Z | 2024-01-01 10:00:00 | 2024-01-01
--   2 | 2024-01-01 23:59:59.999999Z | 2024-01-01 23:59:59 | 2024-01-01
--   4 | 1969-12-31 23:59:59Z | 1969-12-31 23:59:59 | 1969-12-31
--   5 | null | null | null

-- case: a time stamp's zone is part of its literal
-- table: days
DELETE FROM db.t WHERE at = TIMESTAMP '2024-01-01 12:00:00+02:00';
-- counts: deleted 1
-- rows:
--   id | at | local | day
--   2 | 2024-01-01 23:59:59.999999Z | 2024-01-01 23:59:59 | 2024-01-01
--   3 | 2024-01-02 00:00:00Z | 2024-01-02 00:00:00 | 2024-01-02
--   4 | 1969-12-31 23:59:59Z | 1969-12-31 23:59:59 | 1969-12-31
--   5 | null | null | null

-- case: times before 1970 are ordered
-- table: days
DELETE FROM db.t WHERE local < TIMESTAMP_NTZ '1970-01-01 00:00:00';
-- counts: deleted 1
-- rows:
--   id | at | local | day
--   1 | 2024-01-01 10:00:00Z | 2024-01-01 10:00:00 | 2024-01-01
--   2 | 2024-01-01 23:59:59.999999Z | 2024-01-01 23:59:59 | 2024-01-01
--   3 | 2024-01-02 00:00:00Z | 2024-01-02 00:00:00 | 2024-01-02
--   5 | null | null | null

-- case: a whole day of a day partition goes
-- table: days
DELETE FROM db.t WHERE at >= '2024-01-01' AND at < '2024-01-02';
-- counts: deleted 2
-- rows:
--   id | at | local | day
--   3 | 2024-01-02 00:00:00Z | 2024-01-02 00:00:00 | 2024-01-02
--   4 | 1969-12-31 23:59:59Z | 1969-12-31 23:59:59 | 1969-12-31
--   5 | null | null | null

-- case: a date is compared with a text
-- table: days
DELETE FROM db.t WHERE day = '2024-01-02';
-- counts: deleted 1
-- rows:
--   id | at | local | day
--   1 | 2024-01-01 10:00:00Z | 2024-01-01 10:00:00 | 2024-01-01
--   2 | 2024-01-01 23:59:59.999999Z | 2024-01-01 23:59:59 | 2024-01-01
--   4 | 1969-12-31 23:59:59Z | 1969-12-31 23:59:59 | 1969-12-31
--   5 | null | null | null

-- case: a part of a date decides
-- table: days
DELETE FROM db.t WHERE year(day) = 2024 AND hour(at) = 10;
-- counts: deleted 1
-- rows:
--   id | at | local | day
--   2 | 2024-01-01 23:59:59.999999Z | 2024-01-01 23:59:59 | 2024-01-01
--   3 | 2024-01-02 00:00:00Z | 2024-01-02 00:00:00 | 2024-01-02
--   4 | 1969-12-31 23:59:59Z | 1969-12-31 23:59:59 | 1969-12-31
--   5 | null | null | null

-- case: a cast of the column decides
-- table: days
DELETE FROM db.t WHERE CAST(at AS date) = DATE '2024-01-01';
-- counts: deleted 2
-- rows:
--   id | at | local | day
--   3 | 2024-01-02 00:00:00Z | 2024-01-02 00:00:00 | 2024-01-02
--   4 | 1969-12-31 23:59:59Z | 1969-12-31 23:59:59 | 1969-12-31
--   5 | null | null | null

-- case: the session's zone reads literals
-- table: days
-- set: spark.sql.session.timeZone = America/New_York
DELETE FROM db.t WHERE at = TIMESTAMP '2024-01-01 05:00:00';
-- counts: deleted 1
-- rows:
--   id | at | local | day
--   2 | 2024-01-01 23:59:59.999999Z | 2024-01-01 23:59:59 | 2024-01-01
--   3 | 2024-01-02 00:00:00Z | 2024-01-02 00:00:00 | 2024-01-02
--   4 | 1969-12-31 23:59:59Z | 1969-12-31 23:59:59 | 1969-12-31
--   5 | null | null | null

-- case: a field of a struct decides
-- table: nested
DELETE FROM db.t WHERE s.a >= 20;
-- counts: deleted 2
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: x, in: {x: 1, y: 1.5}} | [p, q] | [k -> 1]
--   3 | null | null | null

-- case: a field of a struct in a struct decides
-- table: nested
DELETE FROM db.t WHERE s.in.x = 4;
-- counts: deleted 1
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: x, in: {x: 1, y: 1.5}} | [p, q] | [k -> 1]
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null

-- case: a field of a NULL struct is NULL
-- table: nested
DELETE FROM db.t WHERE s.b IS NULL;
-- counts: deleted 2
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: x, in: {x: 1, y: 1.5}} | [p, q] | [k -> 1]
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: a struct that is NULL is found
-- table: nested
DELETE FROM db.t WHERE s IS NULL;
-- counts: deleted 1
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: x, in: {x: 1, y: 1.5}} | [p, q] | [k -> 1]
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: a struct of nulls is not NULL
-- table: nested
DELETE FROM db.t WHERE s.in IS NOT NULL;
-- counts: deleted 2
-- rows:
--   id | s | tags | m
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null

-- case: a whole struct is compared
-- table: nested
DELETE FROM db.t WHERE s.in = named_struct('x', 1, 'y', 1.5D);
-- java: it cannot push a struct down
-- counts: deleted 1
-- rows:
--   id | s | tags | m
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: an element of an array decides
-- table: nested
DELETE FROM db.t WHERE array_contains(tags, 'q');
-- counts: deleted 2
-- rows:
--   id | s | tags | m
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null

-- case: the size of an array decides
-- table: nested
DELETE FROM db.t WHERE size(tags) = 0;
-- counts: deleted 1
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: x, in: {x: 1, y: 1.5}} | [p, q] | [k -> 1]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: a value of a map decides
-- table: nested
DELETE FROM db.t WHERE m['k'] = 2;
-- counts: deleted 1
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: x, in: {x: 1, y: 1.5}} | [p, q] | [k -> 1]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: a lambda over an array decides
-- table: nested
DELETE FROM db.t WHERE exists(tags, x -> x = 'p');
-- counts: deleted 1
-- rows:
--   id | s | tags | m
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: a timestamp of one time zone equals itself in a function
-- table: types
DELETE FROM db.t WHERE date_trunc('month', ts) = TIMESTAMP '2024-02-01 00:00:00';
-- counts: deleted 1
-- rows:
--   id | b | l | f | d | dec | s | bin | dt | ts
--   2 | false | -1 | -1.5 | 10000000000.0 | -99.99 | '' | x'' | 1970-01-01 | 1970-01-01 00:00:00Z
--   3 | null | null | null | null | null | null | null | null | null

-- case: a decimal is compared with a number of more digits
-- table: types
DELETE FROM db.t WHERE dec < -99.985;
-- counts: deleted 1
-- rows:
--   id | b | l | f | d | dec | s | bin | dt | ts
--   1 | true | 100 | 1.5 | 2.5 | 1.25 | one | x'0102' | 2024-02-29 | 2024-02-29 12:00:00Z
--   3 | null | null | null | null | null | null | null | null | null

-- case: a float is compared with a decimal literal as a double
-- table: types
DELETE FROM db.t WHERE f = 1.5;
-- counts: deleted 1
-- rows:
--   id | b | l | f | d | dec | s | bin | dt | ts
--   2 | false | -1 | -1.5 | 10000000000.0 | -99.99 | '' | x'' | 1970-01-01 | 1970-01-01 00:00:00Z
--   3 | null | null | null | null | null | null | null | null | null

-- case: a literal that the column cannot hold matches nothing
-- table: plain
DELETE FROM db.t WHERE id = 3000000000;
-- counts: none
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: a literal that is above all values of the type is above them
-- table: plain
DELETE FROM db.t WHERE id < 3000000000;
-- counts: deleted 4
-- rows:
--   id | a | b
