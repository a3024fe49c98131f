-- case: an int is stored as a long
-- table: people
UPDATE db.t SET id = 7 WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | name | age | city
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern
--   7 | ann | 30 | oslo

-- case: a long that fits is stored as an int
-- table: plain
UPDATE db.t SET a = 5L WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | a | b
--   1 | 5 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: a long that does not fit an int is an error
-- table: plain
UPDATE db.t SET a = 3000000000 WHERE id = 1;
-- error: InvalidStatementError

-- case: a long that does not fit is no error where no row has it
-- table: plain
UPDATE db.t SET a = 3000000000 WHERE id = 99;
-- counts: none
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: an overflow of the sum itself is an error
-- table: plain
UPDATE db.t SET a = a + 2147483647;
-- error: InvalidStatementError

-- case: a fraction is stored as an int without its digits
-- table: plain
UPDATE db.t SET a = 1.9D WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | a | b
--   1 | 1 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: a decimal is stored as an int without its digits
-- table: plain
UPDATE db.t SET a = -1.9 WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | a | b
--   1 | -1 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: a text is not stored as a number
-- table: plain
UPDATE db.t SET a = '12';
-- error: SchemaMismatchError

-- case: a number is stored as a text
-- table: two
UPDATE db.t SET v = 12 WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | v
--   1 | 12
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: a boolean is stored as a text
-- table: two
UPDATE db.t SET v = id > 2;
-- counts: updated 5
-- rows:
--   id | v
--   1 | false
--   2 | false
--   3 | true
--   4 | true
--   5 | true

-- case: a date is stored as a text
-- table: two
UPDATE db.t SET v = DATE '2024-02-29' WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | v
--   1 | 2024-02-29
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: a time stamp is stored as a text
-- table: two
UPDATE db.t SET v = TIMESTAMP '2024-02-29 01:02:03.5' WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | v
--   1 | 2024-02-29 01:02:03.5
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: a double is stored as a text
-- table: two
UPDATE db.t SET v = 1e10D WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | v
--   1 | 1.0E10
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: a number is not stored as a boolean
-- table: types
UPDATE db.t SET b = 1;
-- error: SchemaMismatchError

-- case: a boolean is not stored as a number
-- table: plain
UPDATE db.t SET a = true;
-- error: SchemaMismatchError

-- case: a text is not stored as a boolean
-- table: types
UPDATE db.t SET b = 'true';
-- error: SchemaMismatchError

-- case: a text is not stored as a date
-- table: days
UPDATE db.t SET day = '2024-01-01';
-- error: SchemaMismatchError

-- case: a date is stored as a time stamp
-- table: days
UPDATE db.t SET at = day, local = day WHERE id = 2;
-- counts: updated 1
-- rows:
--   id | at | local | day
--   1 | 2024-01-01 10:00:00Z | 2024-01-01 10:00:00 | 2024-01-01
--   2 | 2024-01-01 00:00:00Z | 2024-01-01 00:00:00 | 2024-01-01
--   3 | 2024-01-02 00:00:00Z | 2024-01-02 00:00:00 | 2024-01-02
--   4 | 1969-12-31 23:59:59Z | 1969-12-31 23:59:59 | 1969-12-31
--   5 | null | null | null

-- case: a time stamp is stored as a date
-- table: days
UPDATE db.t SET day = at WHERE id = 4;
-- counts: updated 1
-- rows:
--   id | at | local | day
--   1 | 2024-01-01 10:00:00Z | 2024-01-01 10:00:00 | 2024-01-01
--   2 | 2024-01-01 23:59:59.999999Z | 2024-01-01 23:59:59 | 2024-01-01
--   3 | 2024-01-02 00:00:00Z | 2024-01-02 00:00:00 | 2024-01-02
--   4 | 1969-12-31 23:59:59Z | 1969-12-31 23:59:59 | 1969-12-31
--   5 | null | null | null

-- case: a time stamp without zone is stored with one
-- table: days
-- set: spark.sql.session.timeZone = America/New_York
UPDATE db.t SET at = local WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | at | local | day
--   1 | 2024-01-01 15:00:00Z | 2024-01-01 10:00:00 | 2024-01-01
--   2 | 2024-01-01 23:59:59.999999Z | 2024-01-01 23:59:59 | 2024-01-01
--   3 | 2024-01-02 00:00:00Z | 2024-01-02 00:00:00 | 2024-01-02
--   4 | 1969-12-31 23:59:59Z | 1969-12-31 23:59:59 | 1969-12-31
--   5 | null | null | null

-- case: a number is not stored as a time stamp
-- table: days
UPDATE db.t SET at = 1;
-- error: SchemaMismatchError

-- case: a text is not stored as binary
-- table: types
UPDATE db.t SET bin = 'abc';
-- error: SchemaMismatchError

-- case: binary is stored as a text
-- table: types
UPDATE db.t SET s = X'616263' WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | b | l | f | d | dec | s | bin | dt | ts
--   1 | true | 100 | 1.5 | 2.5 | 1.25 | abc | x'0102' | 2024-02-29 | 2024-02-29 12:00:00Z
--   2 | false | -1 | -1.5 | 10000000000.0 | -99.99 | '' | x'' | 1970-01-01 | 1970-01-01 00:00:00Z
--   3 | null | null | null | null | null | null | null | null | null

-- case: a decimal is rounded to the column's scale
-- table: types
UPDATE db.t SET dec = 1.255 WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | b | l | f | d | dec | s | bin | dt | ts
--   1 | true | 100 | 1.5 | 2.5 | 1.26 | one | x'0102' | 2024-02-29 | 2024-02-29 12:00:00Z
--   2 | false | -1 | -1.5 | 10000000000.0 | -99.99 | '' | x'' | 1970-01-01 | 1970-01-01 00:00:00Z
--   3 | null | null | null | null | null | null | null | null | null

-- case: a decimal that does not fit is an error
-- table: types
UPDATE db.t SET dec = 1000.00 WHERE id = 1;
-- error: InvalidStatementError

-- case: an int is stored as a decimal
-- table: types
UPDATE db.t SET dec = 12 WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | b | l | f | d | dec | s | bin | dt | ts
--   1 | true | 100 | 1.5 | 2.5 | 12.00 | one | x'0102' | 2024-02-29 | 2024-02-29 12:00:00Z
--   2 | false | -1 | -1.5 | 10000000000.0 | -99.99 | '' | x'' | 1970-01-01 | 1970-01-01 00:00:00Z
--   3 | null | null | null | null | null | null | null | null | null

-- case: a double is stored as a decimal
-- table: types
UPDATE db.t SET dec = 1.5D WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | b | l | f | d | dec | s | bin | dt | ts
--   1 | true | 100 | 1.5 | 2.5 | 1.50 | one | x'0102' | 2024-02-29 | 2024-02-29 12:00:00Z
--   2 | false | -1 | -1.5 | 10000000000.0 | -99.99 | '' | x'' | 1970-01-01 | 1970-01-01 00:00:00Z
--   3 | null | null | null | null | null | null | null | null | null

-- case: a double is stored as a float
-- table: types
UPDATE db.t SET f = 0.1D, d = 0.1F WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | b | l | f | d | dec | s | bin | dt | ts
--   1 | true | 100 | 0.10000000149011612 | 0.10000000149011612 | 1.25 | one | x'0102' | 2024-02-29 | 2024-02-29 12:00:00Z
--   2 | false | -1 | -1.5 | 10000000000.0 | -99.99 | '' | x'' | 1970-01-01 | 1970-01-01 00:00:00Z
--   3 | null | null | null | null | null | null | null | null | null

-- case: a double that does not fit a float is infinite
-- table: types
UPDATE db.t SET f = 1e300D WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | b | l | f | d | dec | s | bin | dt | ts
--   1 | true | 100 | inf | 2.5 | 1.25 | one | x'0102' | 2024-02-29 | 2024-02-29 12:00:00Z
--   2 | false | -1 | -1.5 | 10000000000.0 | -99.99 | '' | x'' | 1970-01-01 | 1970-01-01 00:00:00Z
--   3 | null | null | null | null | null | null | null | null | null

-- case: NaN and minus zero are stored as they are
-- table: doubles
UPDATE db.t SET d = -0.0D, f = float('NaN') WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | d | f
--   1 | -0.0 | NaN
--   2 | NaN | NaN
--   3 | -0.0 | -0.0
--   4 | 0.0 | 0.0
--   5 | inf | -inf
--   6 | null | null

-- case: NaN is not stored as an int
-- table: doubles
UPDATE db.t SET id = d WHERE id = 2;
-- error: InvalidStatementError

-- case: a bad cast in a value is an error
-- table: two
UPDATE db.t SET id = CAST(v AS int);
-- error: InvalidStatementError

-- case: a bad cast is NULL where the session is not ANSI
-- table: two
-- set: spark.sql.ansi.enabled = false
UPDATE db.t SET id = CAST(v AS int) WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | v
--   2 | two
--   3 | three
--   4 | four
--   5 | five
--   null | one

-- case: an overflow in storing is an error even where the session is not ANSI
-- table: plain
-- set: spark.sql.ansi.enabled = false
UPDATE db.t SET a = 3000000000 WHERE id = 1;
-- error: InvalidStatementError

-- case: an overflow of a sum wraps where the session is not ANSI
-- table: plain
-- set: spark.sql.ansi.enabled = false
UPDATE db.t SET a = a + 2147483647 WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | a | b
--   1 | -2147483639 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: NULL literals do not go into required columns
-- table: required
UPDATE db.t SET v = NULL WHERE id = 1;
-- error: SchemaMismatchError

-- case: a nullable expression without nulls goes into a required column
-- table: required
UPDATE db.t SET id = n WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | v | n
--   10 | a | 10
--   2 | b | null
--   3 | c | 30

-- case: a NULL that is computed does not go into a required column
-- table: required
UPDATE db.t SET id = n;
-- error: SchemaMismatchError

-- case: a required column keeps its values when another changes
-- table: required
UPDATE db.t SET n = NULL;
-- counts: updated 3
-- rows:
--   id | v | n
--   1 | a | null
--   2 | b | null
--   3 | c | null

-- case: DEFAULT of a column without one is NULL
-- table: people
UPDATE db.t SET age = DEFAULT, city = 'x' WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | name | age | city
--   1 | ann | null | x
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: DEFAULT is the column's default
-- table: defaults
UPDATE db.t SET v = DEFAULT, n = DEFAULT WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | v | n
--   1 | none | 7
--   2 | b | null

-- case: DEFAULT within an expression is refused
-- table: defaults
UPDATE db.t SET n = DEFAULT + 1;
-- error: InvalidStatementError

-- case: DEFAULT of a required column without one is refused
-- table: required
UPDATE db.t SET v = DEFAULT WHERE id = 1;
-- error: InvalidStatementError
