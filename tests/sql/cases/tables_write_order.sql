-- case: WRITE LOCALLY ORDERED BY leaves the distribution mode alone
-- table: stores
ALTER TABLE db.t SET TBLPROPERTIES ('write.distribution-mode' = 'hash');
ALTER TABLE db.t WRITE LOCALLY ORDERED BY id;
SHOW TBLPROPERTIES db.t ('write.distribution-mode');
-- result:
--   key | value
--   write.distribution-mode | hash

-- case: WRITE ORDERED BY distributes by range
-- table: stores
ALTER TABLE db.t WRITE ORDERED BY id DESC NULLS FIRST, bucket(4, note);
SHOW TBLPROPERTIES db.t ('write.distribution-mode');
-- result:
--   key | value
--   write.distribution-mode | range

-- case: WRITE UNORDERED does not distribute
-- table: stores
ALTER TABLE db.t WRITE ORDERED BY id;
ALTER TABLE db.t WRITE UNORDERED;
SHOW TBLPROPERTIES db.t ('write.distribution-mode');
-- result:
--   key | value
--   write.distribution-mode | none

-- case: WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY distributes by hash
-- table: stores
ALTER TABLE db.t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id;
SHOW TBLPROPERTIES db.t ('write.distribution-mode');
-- result:
--   key | value
--   write.distribution-mode | hash

-- case: WRITE with the order before the distribution distributes by hash
-- table: stores
ALTER TABLE db.t WRITE LOCALLY ORDERED BY id DISTRIBUTED BY PARTITION;
SHOW TBLPROPERTIES db.t ('write.distribution-mode');
-- result:
--   key | value
--   write.distribution-mode | hash

-- case: a case-sensitive session knows sort columns by their own case only
-- table: stores
-- set: spark.sql.caseSensitive = true
ALTER TABLE db.t WRITE ORDERED BY ID;
-- error: InvalidStatementError
