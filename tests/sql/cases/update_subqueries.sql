-- case: IN a view picks the rows to update
-- table: people
-- view picked: VALUES (1), (5), (99) AS picked(id)
UPDATE db.t SET city = 'picked' WHERE id IN (SELECT id FROM picked);
-- counts: updated 2
-- rows:
--   id | name | age | city
--   1 | ann | 30 | picked
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | picked
--   6 | eve | 60 | bern

-- case: NOT IN with a NULL updates nothing
-- table: people
-- view picked: VALUES (1), (NULL) AS picked(id)
UPDATE db.t SET city = 'picked' WHERE id NOT IN (SELECT id FROM picked);
-- counts: none
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: a correlated EXISTS picks the rows to update
-- table: people
-- view picked: VALUES (1), (5), (99) AS picked(id)
UPDATE db.t AS p SET age = coalesce(age, 0) + 1 WHERE EXISTS (SELECT 1 FROM picked s WHERE s.id = p.id);
-- counts: updated 2
-- rows:
--   id | name | age | city
--   1 | ann | 31 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 21 | rome
--   6 | eve | 60 | bern

-- case: a correlated NOT EXISTS picks the rows to update
-- table: keyed_nulls
-- view picked: VALUES (1), (2) AS picked(id)
UPDATE db.t SET v = 'alone' WHERE NOT EXISTS (SELECT 1 FROM picked WHERE picked.id = t.k);
-- counts: updated 3
-- rows:
--   k | v
--   1 | a
--   2 | null
--   3 | alone
--   null | alone
--   null | alone

-- case: a scalar subquery picks the rows to update
-- table: plain
UPDATE db.t SET a = -1 WHERE b = (SELECT max(b) FROM db.t);
-- counts: updated 1
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | -1 | 400

-- case: a scalar subquery is a value
-- table: plain
UPDATE db.t SET a = (SELECT max(b) FROM db.t) WHERE id <= 2;
-- counts: updated 2
-- rows:
--   id | a | b
--   1 | 400 | 100
--   2 | 400 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: a correlated scalar subquery is a value
-- table: people
-- view ages: VALUES ('oslo', 1), ('rome', 2) AS ages(city, n)
UPDATE db.t AS p SET age = (SELECT max(n) FROM ages a WHERE a.city = p.city);
-- counts: updated 6
-- rows:
--   id | name | age | city
--   1 | ann | 1 | oslo
--   2 | bob | 2 | rome
--   3 | cid | null | null
--   4 | dan | 1 | oslo
--   5 | null | 2 | rome
--   6 | eve | null | bern

-- case: a value from another table of the lake
-- table: plain
-- table u: two
UPDATE db.t SET b = (SELECT count(*) FROM db.u) WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | a | b
--   1 | 10 | 5
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: a subquery under OR picks rows to update
-- table: people
-- view picked: VALUES (1), (5), (99) AS picked(id)
UPDATE db.t SET city = 'picked' WHERE city IS NULL OR id IN (SELECT id FROM picked);
-- counts: updated 3
-- rows:
--   id | name | age | city
--   1 | ann | 30 | picked
--   2 | bob | null | rome
--   3 | cid | 50 | picked
--   4 | dan | 40 | oslo
--   5 | null | 20 | picked
--   6 | eve | 60 | bern

-- case: a subquery over the table itself reads the rows before
-- table: doubled
UPDATE db.t SET v = 'many' WHERE id IN (SELECT id FROM db.t GROUP BY id HAVING count(*) > 1);
-- counts: updated 4
-- rows:
--   id | v
--   1 | many
--   1 | many
--   2 | many
--   2 | many
--   3 | d

-- case: random numbers can be a value
-- table: plain
UPDATE db.t SET a = CAST(floor(rand() * 0) AS int);
-- counts: updated 4
-- rows:
--   id | a | b
--   1 | 0 | 100
--   2 | 0 | 200
--   3 | 0 | 300
--   4 | 0 | 400

-- case: random numbers cannot pick rows
-- table: plain
UPDATE db.t SET a = 1 WHERE rand() < 2;
-- error: InvalidStatementError
