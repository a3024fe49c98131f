-- case: an unknown column is an error of the query
-- table: two
SELECT nope FROM db.t;
-- error: InvalidStatementError

-- case: an unknown column of a subquery is an error of the query
-- table: two
SELECT id FROM db.t WHERE id IN (SELECT nope FROM db.t);
-- error: InvalidStatementError

-- case: an unknown function is an error of the query
-- table: two
SELECT no_function(id) FROM db.t;
-- error: InvalidStatementError

-- case: an operator of types that do not fit is an error of the query
-- table: nested
SELECT id + tags FROM db.t;
-- error: InvalidStatementError

-- case: a division by zero is an error of the query
-- table: two
SELECT id / (id - 1) FROM db.t;
-- error: InvalidStatementError

-- case: a text that is no number is an error of the query
-- table: two
SELECT CAST(v AS INT) FROM db.t;
-- error: InvalidStatementError

-- case: an index beyond an array is an error of the query
-- table: nested
SELECT tags[7] FROM db.t WHERE id = 1;
-- error: InvalidStatementError

-- case: an unknown table in a common table expression is an error of the query
-- table: two
WITH x AS (SELECT * FROM db.nope) SELECT * FROM x;
-- error: TableNotFoundError

-- case: a scalar subquery of several rows is an error of the query
-- table: two
SELECT (SELECT id FROM db.t) AS one;
-- error: InvalidStatementError

-- case: a query that ends too early is refused
-- table: two
SELECT id FROM db.t WHERE id =;
-- error: InvalidStatementError

-- case: sets of other widths are refused
-- table: two
SELECT id FROM db.t UNION SELECT id, v FROM db.t;
-- error: InvalidStatementError

-- case: an error that the query raises is an error of the query
-- table: two
SELECT raise_error('stop') FROM db.t;
-- error: InvalidStatementError
