-- case: rewrite_data_files takes a bucket as its filter
-- table: bucketed
INSERT INTO db.t SELECT id + 100, v FROM db.t;
CALL system.rewrite_data_files(table => 'db.t', where => 'system.bucket(4, id) = 0', options => map('rewrite-all', 'true'));
SELECT partition.id_bucket AS b, count(*) AS n FROM db.t.files GROUP BY partition.id_bucket;
-- result:
--   b | n
--   0 | 1
--   1 | 2
--   2 | 2
--   3 | 2

-- case: rewrite_data_files takes a truncated text as its filter
-- table: truncated
INSERT INTO db.t SELECT id + 100, code FROM db.t;
CALL system.rewrite_data_files(table => 'db.t', where => "system.truncate(2, code) = 'ab'", options => map('rewrite-all', 'true'));
SELECT partition.code_trunc AS c, count(*) AS n FROM db.t.files GROUP BY partition.code_trunc;
-- result:
--   c | n
--   '' | 2
--   ab | 1
--   null | 2
--   xy | 2

-- case: rewrite_data_files takes a day as its filter
-- table: days
INSERT INTO db.t SELECT id + 100, at, local, day FROM db.t;
CALL system.rewrite_data_files(table => 'db.t', where => "system.days(at) = DATE '2024-01-01'", options => map('rewrite-all', 'true'));
SELECT partition.at_day AS d, count(*) AS n FROM db.t.files GROUP BY partition.at_day;
-- result:
--   d | n
--   1969-12-31 | 2
--   2024-01-01 | 1
--   2024-01-02 | 2
--   null | 2

-- case: rewrite_data_files takes years, months and hours as its filter
-- table: days
INSERT INTO db.t SELECT id + 100, at, local, day FROM db.t;
CALL system.rewrite_data_files(table => 'db.t', where => 'system.years(at) = 54 AND system.months(at) = 648 AND system.hours(at) >= 473376', options => map('rewrite-all', 'true'));
SELECT partition.at_day AS d, count(*) AS n FROM db.t.files GROUP BY partition.at_day;
-- result:
--   d | n
--   1969-12-31 | 2
--   2024-01-01 | 2
--   2024-01-02 | 1
--   null | 2

-- case: a filter of a procedure by an unknown column is refused
-- table: bucketed
CALL system.rewrite_data_files(table => 'db.t', where => 'nope = 1');
-- error: InvalidStatementError

-- case: rewrite_manifests makes several manifests of a large one
-- table: many_files
ALTER TABLE db.t SET TBLPROPERTIES ('commit.manifest.target-size-bytes' = '1000');
CALL system.rewrite_manifests('db.t');
SELECT count(*) > 1 AS several, sum(existing_data_files_count) AS files FROM db.t.manifests;
-- result:
--   several | files
--   true | 60

-- case: rewrite_manifests leaves one manifest of the right size
-- table: many_files
CALL system.rewrite_manifests('db.t');
-- result:
--   rewritten_manifests_count | added_manifests_count
--   0 | 0

-- case: rewrite_data_files by z-order of null bytes counts its files as others
-- table: null_bytes
CALL system.rewrite_data_files(table => 'db.t', strategy => 'sort', sort_order => 'zorder(b, c)', options => map('rewrite-all', 'true'));
SELECT count(*) AS files, sum(record_count) AS n FROM db.t.files;
-- result:
--   files | n
--   1 | 6
-- rows:
--   id | b | c
--   1 | null | x'01'
--   2 | x'02' | null
--   3 | null | null
--   4 | x'' | x'04'
--   5 | x'0506' | x'05'
--   6 | null | x''

-- case: rewrite_position_delete_files leaves few delete files alone
-- table: often_marked
-- mode: file_deletes
CALL system.rewrite_position_delete_files('db.t');
-- result:
--   rewritten_delete_files_count | added_delete_files_count | rewritten_bytes_count | added_bytes_count
--   0 | 0 | 0 | 0

-- case: rewrite_position_delete_files takes all delete files along where it is told to
-- table: often_marked
-- mode: file_deletes
CALL system.rewrite_position_delete_files(table => 'db.t', options => map('rewrite-all', 'true'));
SELECT count(*) AS files, sum(record_count) AS positions FROM db.t.delete_files;
-- result:
--   files | positions
--   1 | 3
-- rows:
--   id | v
--   1 | a
--   4 | d
--   5 | e
--   6 | f
--   8 | h

-- case: rewrite_position_delete_files takes a single file along where it is told to
-- table: marked
-- mode: file_deletes
CALL system.rewrite_position_delete_files(table => 'db.t', options => map('rewrite-all', 'true'));
SELECT operation, count(*) AS n FROM db.t.snapshots GROUP BY operation;
-- result:
--   operation | n
--   append | 2
--   delete | 1
--   replace | 1

-- case: rewrite_position_delete_files takes delete files along by its thresholds
-- table: often_marked
-- mode: partition_deletes
CALL system.rewrite_position_delete_files(table => 'db.t', options => map('min-input-files', '2'));
SELECT count(*) AS files, sum(record_count) AS positions FROM db.t.delete_files;
-- result:
--   files | positions
--   1 | 3
