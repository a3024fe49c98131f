-- case: IN a view deletes what it lists
-- table: people
-- view gone: VALUES (1), (4), (99) AS gone(id)
DELETE FROM db.t WHERE id IN (SELECT id FROM gone);
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: NOT IN a view leaves what it lists
-- table: people
-- view gone: VALUES (1), (4), (99) AS gone(id)
DELETE FROM db.t WHERE id NOT IN (SELECT id FROM gone);
-- counts: deleted 4
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   4 | dan | 40 | oslo

-- case: NOT IN a query with a NULL deletes nothing
-- table: people
-- view gone: VALUES (1), (NULL) AS gone(id)
DELETE FROM db.t WHERE id NOT IN (SELECT id FROM gone);
-- counts: none
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: NOT IN an empty query deletes all rows
-- table: keyed_nulls
-- view gone: VALUES (1), (2) AS gone(id)
DELETE FROM db.t WHERE k NOT IN (SELECT id FROM gone WHERE id > 5);
-- counts: deleted 5
-- rows:
--   k | v

-- case: NOT IN does not delete null keys
-- table: keyed_nulls
-- view gone: VALUES (1), (2) AS gone(id)
DELETE FROM db.t WHERE k NOT IN (SELECT id FROM gone);
-- counts: deleted 1
-- rows:
--   k | v
--   1 | a
--   2 | null
--   null | n1
--   null | n2

-- case: IN another table deletes
-- table: people
-- table u: two
DELETE FROM db.t WHERE id IN (SELECT id FROM db.u WHERE v LIKE 'f%');
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   6 | eve | 60 | bern

-- case: IN the table itself reads the rows before
-- table: people
DELETE FROM db.t WHERE city IN (SELECT city FROM db.t WHERE age >= 50);
-- counts: deleted 1
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome

-- case: IN over two columns deletes pairs
-- table: plain
-- view pairs: VALUES (1, 10), (2, 10), (3, 30) AS pairs(id, a)
DELETE FROM db.t WHERE (id, a) IN (SELECT id, a FROM pairs);
-- counts: deleted 2
-- rows:
--   id | a | b
--   2 | 20 | 200
--   4 | 40 | 400

-- case: a correlated EXISTS deletes
-- table: people
-- view limits: VALUES ('oslo', 35), ('rome', 10) AS limits(city, age)
DELETE FROM db.t AS p WHERE EXISTS (SELECT 1 FROM limits l WHERE l.city = p.city AND p.age > l.age);
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   6 | eve | 60 | bern

-- case: a correlated NOT EXISTS deletes rows with null keys too
-- table: people
-- view limits: VALUES ('oslo', 35), ('rome', 10) AS limits(city, age)
DELETE FROM db.t AS p WHERE NOT EXISTS (SELECT 1 FROM limits l WHERE l.city = p.city);
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome

-- case: EXISTS without correlation deletes all or nothing
-- table: plain
-- view gone: VALUES (1), (4), (99) AS gone(id)
DELETE FROM db.t WHERE EXISTS (SELECT 1 FROM gone WHERE id = 99);
-- counts: deleted 4
-- rows:
--   id | a | b

-- case: EXISTS of an empty query deletes nothing
-- table: plain
-- view gone: VALUES (1), (4), (99) AS gone(id)
DELETE FROM db.t WHERE EXISTS (SELECT 1 FROM gone WHERE id = 98);
-- counts: none
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: a scalar subquery decides
-- table: plain
DELETE FROM db.t WHERE id = (SELECT max(id) FROM db.t);
-- counts: deleted 1
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 30 | 300

-- case: a scalar subquery without rows is NULL
-- table: plain
DELETE FROM db.t WHERE id = (SELECT id FROM db.t WHERE id > 100);
-- counts: none
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: a correlated scalar subquery decides
-- table: people
DELETE FROM db.t AS p WHERE age = (SELECT max(q.age) FROM db.t q WHERE q.city = p.city);
-- counts: deleted 3
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null

-- case: a scalar subquery with two rows is refused
-- table: plain
DELETE FROM db.t WHERE id = (SELECT id FROM db.t WHERE id < 3);
-- error: InvalidStatementError

-- case: a subquery beside plain conditions deletes their overlap
-- table: people
-- view gone: VALUES (1), (4), (99) AS gone(id)
DELETE FROM db.t WHERE city = 'oslo' AND age > 30 AND id IN (SELECT id FROM gone);
-- counts: deleted 1
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: a subquery under OR deletes both sides
-- table: people
-- view gone: VALUES (1), (4), (99) AS gone(id)
DELETE FROM db.t WHERE age IS NULL OR id IN (SELECT id FROM gone);
-- counts: deleted 3
-- rows:
--   id | name | age | city
--   3 | cid | 50 | null
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: a subquery in a subquery decides
-- table: people
-- table u: two
DELETE FROM db.t WHERE id IN (SELECT id FROM db.u WHERE id IN (SELECT id - 1 FROM db.u));
-- counts: deleted 4
-- rows:
--   id | name | age | city
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: a subquery with its own names and groups decides
-- table: doubled
DELETE FROM db.t WHERE id IN (SELECT id FROM db.t GROUP BY id HAVING count(*) > 1);
-- counts: deleted 4
-- rows:
--   id | v
--   3 | d

-- case: rows found by window in a subquery go
-- table: stores
DELETE FROM db.t WHERE id IN (
  SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY store ORDER BY amount DESC) AS n FROM db.t) WHERE n > 1
);
-- counts: deleted 3
-- rows:
--   id | store | amount | note
--   4 | 2 | 40.25 | d
--   5 | 1 | 50.00 | e
--   6 | 3 | 60.00 | f
--   7 | null | 70.00 | g

-- case: IN a subquery compares numbers of other types
-- table: people
-- view gone: VALUES ('1'), ('4') AS gone(id)
DELETE FROM db.t WHERE id IN (SELECT CAST(id AS smallint) FROM gone);
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: a NaN of a subquery finds NaN
-- table: doubles
-- view odd: VALUES (double('NaN')), (-0.0D) AS odd(d)
DELETE FROM db.t WHERE d IN (SELECT d FROM odd);
-- counts: deleted 3
-- rows:
--   id | d | f
--   1 | 1.5 | 1.5
--   5 | inf | -inf
--   6 | null | null
