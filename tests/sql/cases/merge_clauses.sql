-- case: matched rows are updated and the others inserted
-- table: two
-- view s: VALUES (2, 'TWO'), (4, 'FOUR'), (9, 'NINE') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET v = s.v
WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v);
-- counts: updated 2, inserted 1
-- rows:
--   id | v
--   1 | one
--   2 | TWO
--   3 | three
--   4 | FOUR
--   5 | five
--   9 | NINE

-- case: stars take all columns by name
-- table: two
-- view s: VALUES (2, 'TWO'), (4, 'FOUR'), (9, 'NINE') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 2, inserted 1
-- rows:
--   id | v
--   1 | one
--   2 | TWO
--   3 | three
--   4 | FOUR
--   5 | five
--   9 | NINE

-- case: only matched rows are updated
-- table: two
-- view s: VALUES (2, 'TWO'), (4, 'FOUR'), (9, 'NINE') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- counts: updated 2
-- rows:
--   id | v
--   1 | one
--   2 | TWO
--   3 | three
--   4 | FOUR
--   5 | five

-- case: only rows that are not there are inserted
-- table: two
-- view s: VALUES (2, 'TWO'), (4, 'FOUR'), (9, 'NINE') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
-- counts: inserted 1
-- rows:
--   id | v
--   1 | one
--   2 | two
--   3 | three
--   4 | four
--   5 | five
--   9 | NINE

-- case: matched rows are deleted
-- table: two
-- view s: VALUES (2, 'TWO'), (4, 'FOUR'), (9, 'NINE') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN DELETE;
-- counts: deleted 2
-- rows:
--   id | v
--   1 | one
--   3 | three
--   5 | five

-- case: matched rows are deleted under a condition and the rest updated
-- table: two
-- view s: VALUES (2, 'TWO'), (4, 'FOUR'), (9, 'NINE') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED AND s.v = 'TWO' THEN DELETE
WHEN MATCHED THEN UPDATE SET v = lower(s.v)
WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 1, deleted 1, inserted 1
-- rows:
--   id | v
--   1 | one
--   3 | three
--   4 | four
--   5 | five
--   9 | NINE

-- case: the first matched clause that holds is taken
-- table: two
-- view s: VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED AND t.id <= 1 THEN UPDATE SET v = 'first'
WHEN MATCHED AND t.id <= 2 THEN UPDATE SET v = 'second'
WHEN MATCHED AND t.id <= 3 THEN DELETE;
-- counts: updated 2, deleted 1
-- rows:
--   id | v
--   1 | first
--   2 | second
--   4 | four
--   5 | five

-- case: rows of no clause stay as they are
-- table: two
-- view s: VALUES (1, 'a'), (2, 'b'), (8, 'c') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED AND s.v = 'a' THEN UPDATE SET *
WHEN NOT MATCHED AND s.v = 'z' THEN INSERT *;
-- counts: updated 1
-- rows:
--   id | v
--   1 | a
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: a clause whose condition is NULL is not taken
-- table: people
-- view s: VALUES (1, 'x'), (2, 'y') AS s(id, city)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED AND t.age > 10 THEN UPDATE SET city = s.city
WHEN MATCHED THEN UPDATE SET city = 'no age';
-- counts: updated 2
-- rows:
--   id | name | age | city
--   1 | ann | 30 | x
--   2 | bob | null | no age
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: the first insert clause that holds is taken
-- table: two
-- view s: VALUES (7, 'a'), (8, 'b'), (9, 'c') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id
WHEN NOT MATCHED AND s.id = 7 THEN INSERT (id, v) VALUES (s.id, 'first')
WHEN NOT MATCHED AND s.id <= 8 THEN INSERT (id, v) VALUES (s.id * 10, concat('second ', s.v));
-- counts: inserted 2
-- rows:
--   id | v
--   1 | one
--   2 | two
--   3 | three
--   4 | four
--   5 | five
--   7 | first
--   80 | second b

-- case: NOT MATCHED BY TARGET is NOT MATCHED
-- table: two
-- view s: VALUES (2, 'TWO'), (9, 'NINE') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED BY TARGET THEN INSERT *;
-- counts: inserted 1
-- rows:
--   id | v
--   1 | one
--   2 | two
--   3 | three
--   4 | four
--   5 | five
--   9 | NINE

-- case: rows that the source lacks are deleted
-- table: two
-- view s: VALUES (2, 'TWO'), (4, 'FOUR'), (9, 'NINE') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE;
-- counts: deleted 3
-- rows:
--   id | v
--   2 | two
--   4 | four

-- case: rows that the source lacks are updated
-- table: two
-- view s: VALUES (2, 'TWO'), (4, 'FOUR'), (9, 'NINE') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = concat(t.v, ' gone');
-- counts: updated 3
-- rows:
--   id | v
--   1 | one gone
--   2 | two
--   3 | three gone
--   4 | four
--   5 | five gone

-- case: all three kinds of clauses work at once
-- table: two
-- view s: VALUES (2, 'TWO'), (4, 'FOUR'), (9, 'NINE') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *
WHEN NOT MATCHED BY SOURCE THEN DELETE;
-- counts: updated 2, deleted 3, inserted 1
-- rows:
--   id | v
--   2 | TWO
--   4 | FOUR
--   9 | NINE

-- case: clauses for rows that the source lacks have conditions
-- table: two
-- view s: VALUES (2, 'TWO'), (4, 'FOUR'), (9, 'NINE') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED AND s.id = 4 THEN DELETE
WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN UPDATE SET v = 'one alone'
WHEN NOT MATCHED BY SOURCE AND t.id > 3 THEN DELETE;
-- counts: updated 1, deleted 2
-- rows:
--   id | v
--   1 | one alone
--   2 | two
--   3 | three

-- case: a matched row that no clause takes is not one that the source lacks
-- table: two
-- view s: VALUES (1, 'a') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED AND false THEN DELETE
WHEN NOT MATCHED BY SOURCE AND t.id < 3 THEN DELETE;
-- counts: deleted 1
-- rows:
--   id | v
--   1 | one
--   3 | three
--   4 | four
--   5 | five

-- case: conditions of clauses see both sides
-- table: two
-- view s: VALUES (1, 'one'), (2, 'zwei') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED AND t.v <> s.v THEN UPDATE SET v = concat(t.v, '/', s.v);
-- counts: updated 1
-- rows:
--   id | v
--   1 | one
--   2 | two/zwei
--   3 | three
--   4 | four
--   5 | five

-- case: expressions see the old values of the target
-- table: plain
-- view s: VALUES (1, 5), (2, 6) AS s(id, a)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET a = t.b + s.a, b = t.a;
-- counts: updated 2
-- rows:
--   id | a | b
--   1 | 105 | 10
--   2 | 206 | 20
--   3 | 30 | 300
--   4 | 40 | 400

-- case: a row that is updated to what it is counts as updated
-- table: two
-- view s: VALUES (1, 'one') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- counts: updated 1
-- rows:
--   id | v
--   1 | one
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: an insert names some columns and the others are NULL
-- table: people
-- view s: VALUES (9, 'new') AS s(id, name)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (name, id) VALUES (s.name, s.id);
-- counts: inserted 1
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern
--   9 | new | null | null

-- case: an insert without a column list is refused
-- table: two
-- view s: VALUES (9, 'new') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v);
-- error: InvalidStatementError

-- case: an insert of constants needs no source column
-- table: two
-- view s: VALUES (9, 'new') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (0, NULL);
-- counts: inserted 1
-- rows:
--   id | v
--   0 | null
--   1 | one
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: an empty source changes nothing
-- table: two
-- view s: VALUES (9, 'new') AS s(id, v)
MERGE INTO db.t USING (SELECT * FROM s WHERE id < 0) AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: none
-- rows:
--   id | v
--   1 | one
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: an empty source leaves all rows to be deleted
-- table: two
-- view s: VALUES (9, 'new') AS s(id, v)
MERGE INTO db.t USING (SELECT * FROM s WHERE id < 0) AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED BY SOURCE THEN DELETE;
-- counts: deleted 5
-- rows:
--   id | v

-- case: an empty target takes all rows
-- table: empty
-- view s: VALUES (1, 'a'), (2, 'b') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE;
-- counts: inserted 2
-- rows:
--   id | v
--   1 | a
--   2 | b

-- case: keys that are all elsewhere change nothing
-- table: two
-- view s: VALUES (100, 'a'), (200, 'b') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;
-- counts: none
-- rows:
--   id | v
--   1 | one
--   2 | two
--   3 | three
--   4 | four
--   5 | five

-- case: a merge without clauses is refused
-- table: two
-- view s: VALUES (1, 'a') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id;
-- error: InvalidStatementError

-- case: only the last matched clause may be without a condition
-- table: two
-- view s: VALUES (1, 'a') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN MATCHED AND s.id = 1 THEN UPDATE SET *;
-- error: InvalidStatementError

-- case: only the last insert clause may be without a condition
-- table: two
-- view s: VALUES (9, 'a') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED AND s.id = 1 THEN INSERT *;
-- error: InvalidStatementError

-- case: only the last clause of rows that the source lacks may be without a condition
-- table: two
-- view s: VALUES (9, 'a') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id
WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN DELETE;
-- error: InvalidStatementError

-- case: matched clauses come before those of inserts
-- table: two
-- view s: VALUES (2, 'TWO'), (9, 'NINE') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT * WHEN MATCHED THEN UPDATE SET *;
-- error: InvalidStatementError

-- case: a star cannot update rows that the source lacks
-- table: two
-- view s: VALUES (2, 'TWO') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *;
-- error: InvalidStatementError

-- case: source columns are unknown to clauses of rows that the source lacks
-- table: two
-- view s: VALUES (2, 'TWO') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = s.v;
-- error: InvalidStatementError

-- case: target columns are unknown to insert clauses
-- table: two
-- view s: VALUES (9, 'NINE') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED AND t.v = 'x' THEN INSERT *;
-- error: InvalidStatementError

-- case: target columns are unknown to inserted values
-- table: two
-- view s: VALUES (9, 'NINE') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, t.v);
-- error: InvalidStatementError

-- case: a merge runs after a merge
-- table: two
-- view s: VALUES (2, 'TWO'), (9, 'NINE') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = concat(t.v, '!') WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 2
-- rows:
--   id | v
--   1 | one
--   2 | TWO!
--   3 | three
--   4 | four
--   5 | five
--   9 | NINE!

-- case: rows deleted before are not matched
-- table: marked
-- view s: VALUES (2, 'two'), (5, 'five'), (8, 'eight') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
-- counts: updated 2, inserted 1
-- rows:
--   id | v
--   1 | a
--   2 | two
--   3 | c
--   4 | d
--   5 | five
--   6 | f
--   7 | g
--   8 | eight
--   9 | i

-- case: a column set to itself keeps its value
-- table: two
-- view s: VALUES (2, 'TWO'), (4, 'FOUR') AS s(id, v)
MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v;
-- counts: updated 2
-- rows:
--   id | v
--   1 | one
--   2 | two
--   3 | three
--   4 | four
--   5 | five
