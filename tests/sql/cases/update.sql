-- case: a literal is set where a condition is TRUE
-- table: people
UPDATE db.t SET city = 'paris' WHERE id = 2;
-- counts: updated 1
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | paris
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: all rows change without a condition
-- table: plain
UPDATE db.t SET a = 0;
-- counts: updated 4
-- rows:
--   id | a | b
--   1 | 0 | 100
--   2 | 0 | 200
--   3 | 0 | 300
--   4 | 0 | 400

-- case: a condition that is NULL changes nothing
-- table: people
UPDATE db.t SET city = 'paris' WHERE age > NULL;
-- counts: none
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: rows whose condition is NULL keep their values
-- table: people
UPDATE db.t SET city = 'old' WHERE age >= 40;
-- counts: updated 3
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | old
--   4 | dan | 40 | old
--   5 | null | 20 | rome
--   6 | eve | 60 | old

-- case: a condition that is FALSE changes nothing
-- table: plain
UPDATE db.t SET a = 0 WHERE false;
-- counts: none
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: an empty table stays empty
-- table: empty
UPDATE db.t SET v = 'x';
-- counts: none
-- rows:
--   id | v

-- case: expressions see the old values
-- table: plain
UPDATE db.t SET a = a + 1, b = a WHERE id <= 2;
-- counts: updated 2
-- rows:
--   id | a | b
--   1 | 11 | 10
--   2 | 21 | 20
--   3 | 30 | 300
--   4 | 40 | 400

-- case: columns are swapped
-- table: plain
UPDATE db.t SET a = b, b = a;
-- counts: updated 4
-- rows:
--   id | a | b
--   1 | 100 | 10
--   2 | 200 | 20
--   3 | 300 | 30
--   4 | 400 | 40

-- case: NULL is set
-- table: people
UPDATE db.t SET age = NULL, city = NULL WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | name | age | city
--   1 | ann | null | null
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: a row that gets its own value counts as updated
-- table: plain
UPDATE db.t SET a = a WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: functions and CASE compute values
-- table: people
UPDATE db.t SET name = upper(coalesce(name, 'nobody')), age = CASE WHEN age > 35 THEN 1 ELSE 0 END;
-- counts: updated 6
-- rows:
--   id | name | age | city
--   1 | ANN | 0 | oslo
--   2 | BOB | 0 | rome
--   3 | CID | 1 | null
--   4 | DAN | 1 | oslo
--   5 | NOBODY | 0 | rome
--   6 | EVE | 1 | bern

-- case: an alias qualifies both sides of an assignment
-- table: plain
UPDATE db.t AS x SET x.a = x.b + x.id WHERE x.id = 3;
-- counts: updated 1
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 303 | 300
--   4 | 40 | 400

-- case: the table's name qualifies both sides
-- table: plain
UPDATE db.t SET t.a = t.b WHERE t.id = 3;
-- counts: updated 1
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 300 | 300
--   4 | 40 | 400

-- case: an alias hides the table's name in SET
-- table: plain
UPDATE db.t AS x SET t.a = 1;
-- error: InvalidStatementError

-- case: the key itself changes
-- table: plain
UPDATE db.t SET id = id + 100 WHERE id > 2;
-- counts: updated 2
-- rows:
--   id | a | b
--   1 | 10 | 100
--   103 | 30 | 300
--   104 | 40 | 400
--   2 | 20 | 200

-- case: names are found in any case when set
-- table: people
UPDATE db.t SET CITY = Name WHERE ID = 1;
-- counts: updated 1
-- rows:
--   id | name | age | city
--   1 | ann | 30 | ann
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: names must be written as they are in SET where the session says so
-- table: people
-- set: spark.sql.caseSensitive = true
UPDATE db.t SET CITY = 'x' WHERE id = 1;
-- error: InvalidStatementError

-- case: odd names are set
-- table: odd_names
UPDATE db.t SET `a b` = `select`, `x.y` = `größe`, `größe` = `x.y` + Id WHERE `x.y` >= 20;
-- counts: updated 2
-- rows:
--   Id | a b | x.y | größe | select
--   1 | p | 10 | 100 | s1
--   2 | s2 | 200 | 22 | s2
--   3 | s3 | 300 | 33 | s3

-- case: an unknown column cannot be set
-- table: people
UPDATE db.t SET nobody = 1;
-- error: InvalidStatementError

-- case: an unknown column in a value is refused
-- table: people
UPDATE db.t SET age = nobody;
-- error: InvalidStatementError

-- case: a column is set once
-- table: plain
UPDATE db.t SET a = 1, a = 2;
-- error: InvalidStatementError

-- case: an unknown table is refused by UPDATE
-- table: plain
UPDATE db.nothing SET a = 1;
-- error: TableNotFoundError

-- case: an aggregate cannot be set
-- table: plain
UPDATE db.t SET a = max(b);
-- error: InvalidStatementError

-- case: a broken SET is refused
-- table: plain
UPDATE db.t SET a WHERE id = 1;
-- error: InvalidStatementError

-- case: equal rows all change
-- table: doubled
UPDATE db.t SET v = 'z' WHERE id = 2;
-- counts: updated 2
-- rows:
--   id | v
--   1 | a
--   1 | b
--   2 | z
--   2 | z
--   3 | d

-- case: rows deleted before do not come back by UPDATE
-- table: marked
UPDATE db.t SET v = upper(v) WHERE id <= 5;
-- counts: updated 4
-- rows:
--   id | v
--   1 | A
--   2 | BACK
--   3 | C
--   4 | D
--   6 | f
--   7 | g
--   8 | h
--   9 | i

-- case: a row is updated twice by two statements
-- table: two
UPDATE db.t SET v = concat(v, '!') WHERE id = 1;
UPDATE db.t SET v = concat(v, '?') WHERE id < 3;
-- counts: updated 2
-- rows:
--   id | v
--   1 | one!?
--   2 | two?
--   3 | three
--   4 | four
--   5 | five

-- case: an updated row is deleted
-- table: two
UPDATE db.t SET v = 'gone' WHERE id IN (1, 4);
DELETE FROM db.t WHERE v = 'gone';
-- counts: deleted 2
-- rows:
--   id | v
--   2 | two
--   3 | three
--   5 | five

-- case: a deleted row is not updated
-- table: two
DELETE FROM db.t WHERE id = 1;
UPDATE db.t SET v = 'x' WHERE id <= 2;
-- counts: updated 1
-- rows:
--   id | v
--   2 | x
--   3 | three
--   4 | four
--   5 | five

-- case: rows move to another partition
-- table: stores
UPDATE db.t SET store = 9 WHERE store = 1 AND amount > 15;
-- counts: updated 2
-- rows:
--   id | store | amount | note
--   1 | 1 | 10.00 | a
--   2 | 9 | 20.50 | null
--   3 | 2 | 30.00 | c
--   4 | 2 | 40.25 | d
--   5 | 9 | 50.00 | e
--   6 | 3 | 60.00 | f
--   7 | null | 70.00 | g

-- case: rows move to the partition of nulls and out of it
-- table: stores
UPDATE db.t SET store = CASE WHEN store IS NULL THEN 5 ELSE NULL END WHERE store IS NULL OR store = 3;
-- counts: updated 2
-- rows:
--   id | store | amount | note
--   1 | 1 | 10.00 | a
--   2 | 1 | 20.50 | null
--   3 | 2 | 30.00 | c
--   4 | 2 | 40.25 | d
--   5 | 1 | 50.00 | e
--   6 | null | 60.00 | f
--   7 | 5 | 70.00 | g

-- case: a whole partition changes in place
-- table: stores
UPDATE db.t SET note = concat('was ', note) WHERE store = 1;
-- counts: updated 3
-- rows:
--   id | store | amount | note
--   1 | 1 | 10.00 | was a
--   2 | 1 | 20.50 | null
--   3 | 2 | 30.00 | c
--   4 | 2 | 40.25 | d
--   5 | 1 | 50.00 | was e
--   6 | 3 | 60.00 | f
--   7 | null | 70.00 | g

-- case: rows move to another bucket
-- table: bucketed
UPDATE db.t SET id = id * 10 WHERE id % 2 = 0;
-- counts: updated 4
-- rows:
--   id | v
--   1 | a
--   20 | b
--   3 | c
--   40 | d
--   5 | e
--   60 | f
--   7 | g
--   80 | h

-- case: rows move to another day
-- table: days
UPDATE db.t SET at = at + INTERVAL 1 DAY, day = date_add(day, 1) WHERE id IN (1, 4);
-- counts: updated 2
-- rows:
--   id | at | local | day
--   1 | 2024-01-02 10:00:00Z | 2024-01-01 10:00:00 | 2024-01-02
--   2 | 2024-01-01 23:59:59.999999Z | 2024-01-01 23:59:59 | 2024-01-01
--   3 | 2024-01-02 00:00:00Z | 2024-01-02 00:00:00 | 2024-01-02
--   4 | 1970-01-01 23:59:59Z | 1969-12-31 23:59:59 | 1970-01-01
--   5 | null | null | null

-- case: rows of several partition specs change at once
-- table: evolved
UPDATE db.t SET extra = id * 2, w = upper(w) WHERE p = 1;
-- counts: updated 2
-- rows:
--   id | w | p | extra
--   1 | A | 1 | 2
--   2 | b | 2 | null
--   3 | C | 1 | 6
--   4 | d | 2 | null

-- case: rows of a branch change and the main branch keeps its own
-- table: branched
UPDATE db.t.branch_b SET v = 'changed' WHERE id >= 2;
-- counts: updated 2
-- rows:
--   id | v
--   1 | a
--   2 | b
--   3 | c
--   4 | main only
-- rows db.t.branch_b:
--   id | v
--   1 | a
--   2 | changed
--   3 | changed

-- case: metadata columns can be a value
-- table: plain
UPDATE db.t SET a = _pos WHERE id > 2;
-- counts: updated 2
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 2 | 300
--   4 | 3 | 400

-- case: UPDATE of a view of the session is refused
-- table: two
-- view few: VALUES (1, 'x'), (9, 'y') AS few(id, w)
UPDATE few SET w = 'z' WHERE id = 1;
-- error: InvalidStatementError

-- case: UPDATE of a table of Spark's own catalog is refused
-- table: two
CREATE TABLE IF NOT EXISTS spark_catalog.default.words_of_spark USING parquet AS SELECT 9 AS id, 'y' AS w;
UPDATE spark_catalog.default.words_of_spark SET w = 'z' WHERE id = 9;
-- error: InvalidStatementError
