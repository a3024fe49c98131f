-- case: USING orc makes a table of ORC files
-- table: empty
CREATE TABLE db.made (id int, v string) USING orc;
INSERT INTO db.made VALUES (1, 'a');
SELECT file_format FROM db.made.files;
-- result:
--   file_format
--   ORC

-- case: USING avro with a query makes a table of Avro files
-- table: empty
CREATE TABLE db.made USING avro AS SELECT 1 AS id;
SELECT file_format FROM db.made.files;
-- result:
--   file_format
--   AVRO

-- case: USING parquet is a property of the table
-- table: empty
CREATE TABLE db.made (id int) USING parquet;
SHOW TBLPROPERTIES db.made ('write.format.default');
-- result:
--   key | value
--   write.format.default | parquet

-- case: USING and a property that name two formats are refused
-- table: empty
CREATE TABLE db.made (id int) USING orc TBLPROPERTIES ('write.format.default' = 'avro');
-- error: InvalidStatementError
