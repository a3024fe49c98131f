-- case: an alias qualifies columns
-- table: people
DELETE FROM db.t AS x WHERE x.id = 1 AND x.age = 30;
-- counts: deleted 1
-- rows:
--   id | name | age | city
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: an alias needs no AS
-- table: people
DELETE FROM db.t x WHERE x.city = 'rome';
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   6 | eve | 60 | bern

-- case: the table's name qualifies columns
-- table: people
DELETE FROM db.t WHERE t.id = 2;
-- counts: deleted 1
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: an alias hides the table's name
-- table: people
DELETE FROM db.t AS x WHERE t.id = 2;
-- error: InvalidStatementError

-- case: an unknown column is refused
-- table: people
DELETE FROM db.t WHERE nobody = 1;
-- error: InvalidStatementError

-- case: an unknown table is refused
-- table: people
DELETE FROM db.nothing WHERE id = 1;
-- error: TableNotFoundError

-- case: a condition that is no boolean is refused
-- table: people
DELETE FROM db.t WHERE id + 1;
-- error: InvalidStatementError

-- case: a broken statement is refused
-- table: people
DELETE FROM db.t WHERE id =;
-- error: InvalidStatementError

-- case: names are found in any case
-- table: people
DELETE FROM db.t WHERE ID = 1 OR Name = 'dan';
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: names must be written as they are where the session says so
-- table: people
-- set: spark.sql.caseSensitive = true
DELETE FROM db.t WHERE ID = 1;
-- error: InvalidStatementError

-- case: names written as they are do in a strict session
-- table: odd_names
-- set: spark.sql.caseSensitive = true
DELETE FROM db.t WHERE Id = 1;
-- counts: deleted 1
-- rows:
--   Id | a b | x.y | größe | select
--   2 | q | 20 | 200 | s2
--   3 | r | 30 | 300 | s3

-- case: a name with a space is quoted
-- table: odd_names
DELETE FROM db.t WHERE `a b` = 'q';
-- counts: deleted 1
-- rows:
--   Id | a b | x.y | größe | select
--   1 | p | 10 | 100 | s1
--   3 | r | 30 | 300 | s3

-- case: a name with a dot is one column
-- table: odd_names
DELETE FROM db.t WHERE `x.y` > 10;
-- counts: deleted 2
-- rows:
--   Id | a b | x.y | größe | select
--   1 | p | 10 | 100 | s1

-- case: letters of other languages and keywords are names
-- table: odd_names
DELETE FROM db.t WHERE `größe` = 300 OR `select` = 's1';
-- counts: deleted 2
-- rows:
--   Id | a b | x.y | größe | select
--   2 | q | 20 | 200 | s2

-- case: a qualified odd name is found
-- table: odd_names
DELETE FROM db.t AS `the alias` WHERE `the alias`.`x.y` = 20;
-- counts: deleted 1
-- rows:
--   Id | a b | x.y | größe | select
--   1 | p | 10 | 100 | s1
--   3 | r | 30 | 300 | s3

-- case: comments and case of keywords do not matter
-- table: people
delete /* all of them? */ from db.t -- no
where id = 1;
-- counts: deleted 1
-- rows:
--   id | name | age | city
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo
--   5 | null | 20 | rome
--   6 | eve | 60 | bern

-- case: a text that cannot be cast fails under ANSI rules
-- table: people
DELETE FROM db.t WHERE CAST(name AS int) = 1;
-- error: InvalidStatementError

-- case: a division by zero fails under ANSI rules
-- table: plain
DELETE FROM db.t WHERE a / (id - 1) > 0;
-- error: InvalidStatementError

-- case: try_cast gives NULL instead of an error
-- table: people
DELETE FROM db.t WHERE try_cast(name AS int) IS NULL AND id > 4;
-- counts: deleted 2
-- rows:
--   id | name | age | city
--   1 | ann | 30 | oslo
--   2 | bob | null | rome
--   3 | cid | 50 | null
--   4 | dan | 40 | oslo

-- case: a division by zero is NULL where the session is not ANSI
-- table: plain
-- set: spark.sql.ansi.enabled = false
DELETE FROM db.t WHERE a / (id - 1) IS NULL;
-- counts: deleted 1
-- rows:
--   id | a | b
--   2 | 20 | 200
--   3 | 30 | 300
--   4 | 40 | 400

-- case: an aggregate in the condition is refused
-- table: people
DELETE FROM db.t WHERE id = max(id);
-- error: InvalidStatementError

-- case: metadata columns decide
-- table: plain
DELETE FROM db.t WHERE _pos = 2;
-- java: it cannot push a metadata column down
-- counts: deleted 1
-- rows:
--   id | a | b
--   1 | 10 | 100
--   2 | 20 | 200
--   4 | 40 | 400
