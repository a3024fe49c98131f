-- case: the number of retries is a whole number
-- table: two
ALTER TABLE db.t SET TBLPROPERTIES ('commit.retry.num-retries' = 'x');
-- java: it takes the property, and fails when it commits
-- error: InvalidStatementError

-- case: the sort order is no property
-- table: two
ALTER TABLE db.t SET TBLPROPERTIES ('sort-order' = 'id ASC');
-- error: InvalidStatementError

-- case: identifier fields are no property
-- table: two
ALTER TABLE db.t SET TBLPROPERTIES ('identifier-fields' = '[id]');
-- error: InvalidStatementError

-- case: the current snapshot is no property
-- table: two
ALTER TABLE db.t SET TBLPROPERTIES ('current-snapshot-id' = '1');
-- error: InvalidStatementError

-- case: a table cannot be created with a reserved property
-- table: two
CREATE TABLE db.made (id int) TBLPROPERTIES ('provider' = 'iceberg');
-- error: InvalidStatementError

-- case: the format version does not go back
-- table: two
ALTER TABLE db.t SET TBLPROPERTIES ('format-version' = '1');
-- error: InvalidStatementError

-- case: metrics modes have names
-- table: two
ALTER TABLE db.t SET TBLPROPERTIES ('write.metadata.metrics.default' = 'some');
-- java: it takes unknown metrics modes for the default
-- error: InvalidStatementError

-- case: a distribution mode is one of three
-- table: two
ALTER TABLE db.t SET TBLPROPERTIES ('write.distribution-mode' = 'sideways');
-- java: it takes the property, and fails when rows are written
-- error: InvalidStatementError

-- case: COMMENT ON TABLE sets the table's comment
-- table: two
COMMENT ON TABLE db.t IS 'two columns';
SHOW TBLPROPERTIES db.t ('comment');
-- java: Spark leaves reserved properties out of SHOW TBLPROPERTIES
-- result:
--   key | value
--   comment | two columns

-- case: COMMENT ON TABLE of nothing is refused
-- table: two
COMMENT ON TABLE db.nope IS 'nothing';
-- error: TableNotFoundError

-- case: CREATE TABLE with CLUSTER BY is refused
-- table: two
CREATE TABLE db.clustered (id int) USING iceberg CLUSTER BY (id);
-- error: UnsupportedFeatureError

-- case: a table cannot be made with retries that are no number
-- table: empty
CREATE TABLE db.made USING iceberg TBLPROPERTIES ('commit.retry.num-retries' = 'x') AS SELECT 1 AS id;
-- error: InvalidStatementError

-- case: a table cannot be made with a distribution mode that there is not
-- table: empty
CREATE TABLE db.made USING iceberg TBLPROPERTIES ('write.distribution-mode' = 'sideways') AS SELECT 1 AS id;
-- error: InvalidStatementError

-- case: a table cannot be made with a target size that is no number
-- table: empty
CREATE TABLE db.made USING iceberg TBLPROPERTIES ('write.target-file-size-bytes' = 'large') AS SELECT 1 AS id;
-- error: InvalidStatementError
