-- The tables that cases start from. Each INSERT is a snapshot with files of its own.

-- layout: people
CREATE TABLE db.t (id bigint, name string, age int, city string);
INSERT INTO db.t VALUES (1, 'ann', 30, 'oslo'), (2, 'bob', NULL, 'rome'), (3, 'cid', 50, NULL);
INSERT INTO db.t VALUES (4, 'dan', 40, 'oslo'), (5, NULL, 20, 'rome'), (6, 'eve', 60, 'bern');

-- layout: plain
CREATE TABLE db.t (id int, a int, b int);
INSERT INTO db.t VALUES (1, 10, 100), (2, 20, 200), (3, 30, 300), (4, 40, 400);

-- layout: two
CREATE TABLE db.t (id int, v string);
INSERT INTO db.t VALUES (1, 'one'), (2, 'two'), (3, 'three');
INSERT INTO db.t VALUES (4, 'four'), (5, 'five');

-- layout: empty
CREATE TABLE db.t (id int, v string);

-- layout: stores
CREATE TABLE db.t (id bigint, store int, amount decimal(9, 2), note string) PARTITIONED BY (store);
INSERT INTO db.t VALUES (1, 1, 10.00, 'a'), (2, 1, 20.50, NULL), (3, 2, 30.00, 'c'), (4, 2, 40.25, 'd');
INSERT INTO db.t VALUES (5, 1, 50.00, 'e'), (6, 3, 60.00, 'f'), (7, NULL, 70.00, 'g');

-- layout: bucketed
CREATE TABLE db.t (id bigint, v string) PARTITIONED BY (bucket(4, id));
INSERT INTO db.t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e'), (6, 'f'), (7, 'g'), (8, 'h');

-- layout: days
CREATE TABLE db.t (id int, at timestamp, local timestamp_ntz, day date) PARTITIONED BY (days(at));
INSERT INTO db.t VALUES
  (1, TIMESTAMP '2024-01-01 10:00:00', TIMESTAMP_NTZ '2024-01-01 10:00:00', DATE '2024-01-01'),
  (2, TIMESTAMP '2024-01-01 23:59:59.999999', TIMESTAMP_NTZ '2024-01-01 23:59:59', DATE '2024-01-01'),
  (3, TIMESTAMP '2024-01-02 00:00:00', TIMESTAMP_NTZ '2024-01-02 00:00:00', DATE '2024-01-02'),
  (4, TIMESTAMP '1969-12-31 23:59:59', TIMESTAMP_NTZ '1969-12-31 23:59:59', DATE '1969-12-31'),
  (5, NULL, NULL, NULL);

-- layout: truncated
CREATE TABLE db.t (id int, code string) PARTITIONED BY (truncate(2, code));
INSERT INTO db.t VALUES (1, 'abc'), (2, 'abd'), (3, 'xyz'), (4, NULL), (5, '');

-- layout: keyed_nulls
CREATE TABLE db.t (k int, v string);
INSERT INTO db.t VALUES (1, 'a'), (NULL, 'n1'), (2, NULL), (NULL, 'n2'), (3, 'c');

-- layout: doubles
CREATE TABLE db.t (id int, d double, f float);
INSERT INTO db.t VALUES
  (1, 1.5D, 1.5F), (2, double('NaN'), float('NaN')), (3, -0.0D, float('-0.0')), (4, 0.0D, 0.0F),
  (5, double('Infinity'), float('-Infinity')), (6, NULL, NULL);

-- layout: nested
CREATE TABLE db.t (
  id int,
  s struct<a: int, b: string, in: struct<x: int, y: double>>,
  tags array<string>,
  m map<string, int>
);
INSERT INTO db.t VALUES
  (1, named_struct('a', 10, 'b', 'x', 'in', named_struct('x', 1, 'y', 1.5D)), array('p', 'q'), map('k', 1)),
  (2, named_struct('a', 20, 'b', NULL, 'in', NULL), array(), map('k', 2, 'l', 3));
INSERT INTO db.t VALUES
  (3, NULL, NULL, NULL),
  (4, named_struct('a', 40, 'b', 'z', 'in', named_struct('x', 4, 'y', NULL)), array(NULL, 'q'), map());

-- layout: odd_names
CREATE TABLE db.t (`Id` int, `a b` string, `x.y` int, `größe` int, `select` string);
INSERT INTO db.t VALUES (1, 'p', 10, 100, 's1'), (2, 'q', 20, 200, 's2'), (3, 'r', 30, 300, 's3');

-- layout: required
CREATE TABLE db.t (id int NOT NULL, v string NOT NULL, n int);
INSERT INTO db.t VALUES (1, 'a', 10), (2, 'b', NULL), (3, 'c', 30);

-- layout: types
CREATE TABLE db.t (
  id int, b boolean, l bigint, f float, d double, dec decimal(5, 2), s string, bin binary, dt date,
  ts timestamp
);
INSERT INTO db.t VALUES
  (1, true, 100, 1.5F, 2.5D, 1.25, 'one', X'0102', DATE '2024-02-29', TIMESTAMP '2024-02-29 12:00:00'),
  (2, false, -1, -1.5F, 1e10D, -99.99, '', X'', DATE '1970-01-01', TIMESTAMP '1970-01-01 00:00:00'),
  (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

-- layout: doubled
CREATE TABLE db.t (id int, v string);
INSERT INTO db.t VALUES (1, 'a'), (1, 'b'), (2, 'c');
INSERT INTO db.t VALUES (2, 'c'), (3, 'd');

-- layout: defaults
CREATE TABLE db.t (id int, v string DEFAULT 'none', n int DEFAULT 7)
TBLPROPERTIES ('format-version' = '3');
INSERT INTO db.t VALUES (1, 'a', 1), (2, 'b', NULL);

-- layout: branched
CREATE TABLE db.t (id int, v string);
INSERT INTO db.t VALUES (1, 'a'), (2, 'b'), (3, 'c');
ALTER TABLE db.t CREATE BRANCH b;
INSERT INTO db.t VALUES (4, 'main only');

-- layout: evolved
CREATE TABLE db.t (id int, v string, p int) PARTITIONED BY (p);
INSERT INTO db.t VALUES (1, 'a', 1), (2, 'b', 2);
ALTER TABLE db.t ADD COLUMN extra bigint;
ALTER TABLE db.t ALTER COLUMN id TYPE bigint;
ALTER TABLE db.t RENAME COLUMN v TO w;
ALTER TABLE db.t REPLACE PARTITION FIELD p WITH bucket(2, id);
INSERT INTO db.t VALUES (3, 'c', 1, 33), (4, 'd', 2, NULL);

-- layout: marked
CREATE TABLE db.t (id int, v string)
TBLPROPERTIES ('write.delete.mode' = 'merge-on-read');
INSERT INTO db.t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e'), (6, 'f'), (7, 'g'), (8, 'h');
DELETE FROM db.t WHERE id = 2 OR id = 5;
INSERT INTO db.t VALUES (2, 'back'), (9, 'i');

-- layout: flags
CREATE TABLE db.t (id int, flag boolean, v int);
INSERT INTO db.t VALUES (1, true, 0), (2, false, 0), (3, NULL, 0), (5, false, 0);

-- layout: required_fields
CREATE TABLE db.t (id int, s struct<a: int NOT NULL, b: string>);
INSERT INTO db.t VALUES (1, named_struct('a', 10, 'b', 'x')), (2, NULL);
INSERT INTO db.t VALUES (3, named_struct('a', 30, 'b', NULL)), (4, NULL);

-- layout: required_fields_orc
CREATE TABLE db.t (id int, s struct<a: int NOT NULL, b: string>) USING orc;
INSERT INTO db.t VALUES (1, named_struct('a', 10, 'b', 'x')), (2, NULL), (3, named_struct('a', 30, 'b', NULL));

-- layout: required_fields_avro
CREATE TABLE db.t (id int, s struct<a: int NOT NULL, b: string>) USING avro;
INSERT INTO db.t VALUES (1, named_struct('a', 10, 'b', 'x')), (2, NULL), (3, named_struct('a', 30, 'b', NULL));

-- layout: three_fields
CREATE TABLE db.t (id int, s struct<a: int, b: string, in: struct<x: int, y: int>>);
INSERT INTO db.t VALUES
  (1, named_struct('a', 10, 'b', 'one', 'in', named_struct('x', 1, 'y', 2))),
  (2, named_struct('a', 20, 'b', 'two', 'in', NULL)),
  (3, NULL);

-- layout: many_files
CREATE TABLE db.t (id bigint, p bigint) PARTITIONED BY (p);
INSERT INTO db.t SELECT id, id FROM range(60);

-- layout: null_bytes
CREATE TABLE db.t (id int, b binary, c binary);
INSERT INTO db.t VALUES (1, NULL, X'01'), (2, X'02', NULL);
INSERT INTO db.t VALUES (3, NULL, NULL), (4, X'', X'04');
INSERT INTO db.t VALUES (5, X'0506', X'05'), (6, NULL, X'');

-- layout: often_marked
CREATE TABLE db.t (id int, v string)
TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'write.delete.granularity' = 'partition');
INSERT INTO db.t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e'), (6, 'f'), (7, 'g'), (8, 'h');
DELETE FROM db.t WHERE id = 2;
DELETE FROM db.t WHERE id = 3;
DELETE FROM db.t WHERE id = 7;
