-- case: equality deletes the one row
-- table: people
DELETE FROM db.t WHERE id = 3;
-- counts: deleted 1
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: a condition that is NULL deletes nothing
-- table: people
DELETE FROM db.t WHERE age > NULL;
-- counts: none
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: rows whose condition is NULL stay
-- table: people
DELETE FROM db.t WHERE age > 35;
-- counts: deleted 3
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   5 | null | 20 | rome

-- case: NOT of a NULL condition is not TRUE either
-- table: people
DELETE FROM db.t WHERE NOT (age > 35);
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   6 | eve | 60 | bern

-- case: inequality skips nulls
-- table: people
DELETE FROM db.t WHERE name <> 'ann';
-- counts: deleted 4
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   5 | null | 20 | rome

-- case: IS NULL deletes rows without a value
-- table: people
DELETE FROM db.t WHERE age IS NULL;
-- counts: deleted 1
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: IS NOT NULL deletes rows with a value
-- table: people
DELETE FROM db.t WHERE city IS NOT NULL;
-- counts: deleted 5
-- rows:
--   id | name | age | city
--   3 | cid | 50 | null

-- case: null-safe equality with NULL finds nulls
-- table: people
DELETE FROM db.t WHERE name <=> NULL;
-- counts: deleted 1
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   6 | eve | 60 | bern

-- case: NOT of null-safe equality deletes nulls too
-- table: people
DELETE FROM db.t WHERE NOT (city <=> 'oslo');
-- counts: deleted 4
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   4 | dan | 40 | oslo

-- case: a condition that is TRUE deletes all rows
-- table: people
DELETE FROM db.t WHERE true;
-- counts: deleted 6
-- rows:
--   id | name | age | city

-- case: no condition deletes all rows
-- table: people
DELETE FROM db.t;
-- counts: deleted 6
-- rows:
--   id | name | age | city

-- case: a condition that is FALSE deletes nothing
-- table: people
DELETE FROM db.t WHERE 1 = 2;
-- counts: none
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: deleting from an empty table does nothing
-- table: empty
DELETE FROM db.t WHERE id = 1;
-- counts: none
-- rows:
--   id | v

-- case: a value outside of all files deletes nothing
-- table: people
DELETE FROM db.t WHERE id = 1000;
-- counts: none
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: BETWEEN includes both ends
-- table: people
DELETE FROM db.t WHERE id BETWEEN 2 AND 4;
-- counts: deleted 3
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: NOT BETWEEN leaves the range and nulls
-- table: people
DELETE FROM db.t WHERE age NOT BETWEEN 30 AND 50;
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo

-- case: IN deletes listed values
-- table: people
DELETE FROM db.t WHERE city IN ('oslo', 'bern', 'nowhere');
-- counts: deleted 3
-- rows:
--   id | name | age | city
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   5 | null | 20 | rome

-- case: IN with a NULL in its list deletes the values found
-- table: people
DELETE FROM db.t WHERE id IN (1, NULL, 6);
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome

-- case: NOT IN with a NULL in its list deletes nothing
-- table: people
DELETE FROM db.t WHERE id NOT IN (1, NULL);
-- counts: none
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: NOT IN leaves listed values and nulls
-- table: people
DELETE FROM db.t WHERE city NOT IN ('oslo', 'bern');
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   6 | eve | 60 | bern

-- case: LIKE matches a prefix
-- table: people
DELETE FROM db.t WHERE city LIKE 'o%';
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: LIKE matches single characters in the middle
-- table: people
DELETE FROM db.t WHERE name LIKE '_o_' OR name LIKE '%e';
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome

-- case: NOT LIKE leaves nulls
-- table: people
DELETE FROM db.t WHERE city NOT LIKE 'r%';
-- counts: deleted 3
-- rows:
--   id | name | age | city
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   5 | null | 20 | rome

-- case: a regular expression decides
-- table: people
DELETE FROM db.t WHERE name RLIKE '^[a-c]';
-- counts: deleted 3
-- rows:
--   id | name | age | city
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: AND and OR bind as usual
-- table: people
DELETE FROM db.t WHERE id = 1 OR city = 'rome' AND age = 20;
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   6 | eve | 60 | bern

-- case: OR with a NULL side deletes where the other side is TRUE
-- table: people
DELETE FROM db.t WHERE age > 100 OR name = 'bob';
-- counts: deleted 1
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: columns are compared with each other
-- table: plain
DELETE FROM db.t WHERE b = a * 10 AND a / id = 10 AND id > 2;
-- counts: deleted 2
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200

-- case: arithmetic on a column decides
-- table: plain
DELETE FROM db.t WHERE id % 2 = 1;
-- counts: deleted 2
-- rows:
--   id | a | b
--   2 | 20 | 200
--   4 | 40 | 400

-- case: functions decide
-- table: people
DELETE FROM db.t WHERE upper(name) = 'ANN' OR length(city) = 4 AND coalesce(age, 0) = 0;
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: CASE decides
-- table: people
DELETE FROM db.t WHERE CASE WHEN age IS NULL THEN true WHEN age > 50 THEN true ELSE false END;
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome

-- case: the literal may stand first
-- table: people
DELETE FROM db.t WHERE 4 < id AND 20 >= age;
-- counts: deleted 1
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   6 | eve | 60 | bern

-- case: a text literal is cast to the column's number
-- table: people
DELETE FROM db.t WHERE id = '4';
-- counts: deleted 1
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: a whole column is compared with a fraction
-- table: people
DELETE FROM db.t WHERE id > 4.5;
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo

-- case: a boolean column is a condition by itself
-- table: types
DELETE FROM db.t WHERE b;
-- counts: deleted 1
-- rows:
--   id | b | l | f | d | dec | s | bin | dt | ts
--   2 | false | -1 | -1.5 | 10000000000.0 | -99.99 | '' | x'' | 1970-01-01 | 1970-01-01 00:00:00Z
--   3 | null | null | null | null | null | null | null | null | null

-- case: NOT of a boolean column leaves nulls
-- table: types
DELETE FROM db.t WHERE NOT b;
-- counts: deleted 1
-- rows:
--   id | b | l | f | d | dec | s | bin | dt | ts
--   1 | true | 100 | 1.5 | 2.5 | 1.25 | one | x'0102' | 2024-02-29 | 2024-02-29 12:00:00Z
--   3 | null | null | null | null | null | null | null | null | null

-- case: decimals are compared exactly
-- table: stores
DELETE FROM db.t WHERE amount = 20.5 OR amount > 60.00;
-- counts: deleted 2
-- rows:
--   id | store | amount | note
--   1 | 1 | 10.00 | a
--   3 | 2 | 30.00 | c
--   4 | 2 | 40.25 | d
--   5 | 1 | 50.00 | e
--   6 | 3 | 60.00 | f

-- case: binary values are compared
-- table: types
DELETE FROM db.t WHERE bin = X'0102';
-- counts: deleted 1
-- rows:
--   id | b | l | f | d | dec | s | bin | dt | ts
--   2 | false | -1 | -1.5 | 10000000000.0 | -99.99 | '' | x'' | 1970-01-01 | 1970-01-01 00:00:00Z
--   3 | null | null | null | null | null | null | null | null | null

-- case: the empty text is not NULL
-- table: types
DELETE FROM db.t WHERE s = '';
-- counts: deleted 1
-- rows:
--   id | b | l | f | d | dec | s | bin | dt | ts
--   1 | true | 100 | 1.5 | 2.5 | 1.25 | one | x'0102' | 2024-02-29 | 2024-02-29 12:00:00Z
--   3 | null | null | null | null | null | null | null | null | null

-- case: several statements delete one after another
-- table: people
DELETE FROM db.t WHERE id = 1;
DELETE FROM db.t WHERE id = 4;
DELETE FROM db.t WHERE id IN (1, 2, 4);
-- counts: deleted 1
-- rows:
--   id | name | age | city
--   3 | cid | 50 | null
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: rows deleted before are not counted again
-- table: marked
DELETE FROM db.t WHERE id <= 5;
-- counts: deleted 4
-- rows:
--   id | v
--   6 | f
--   7 | g
--   8 | h
--   9 | i

-- case: a row inserted after its deletion is deleted anew
-- table: marked
DELETE FROM db.t WHERE id = 2;
-- counts: deleted 1
-- rows:
--   id | v
--   1 | a
--   3 | c
--   4 | d
--   6 | f
--   7 | g
--   8 | h
--   9 | i

-- case: equal rows are all deleted
-- table: doubled
DELETE FROM db.t WHERE id = 2 AND v = 'c';
-- counts: deleted 2
-- rows:
--   id | v
--   1 | a
--   1 | b
--   3 | d

-- case: a condition of random numbers is refused
-- table: people
DELETE FROM db.t WHERE rand() < 2;
-- error: InvalidStatementError
