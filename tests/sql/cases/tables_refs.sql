-- case: DROP BRANCH of a tag is refused
-- table: two
ALTER TABLE db.t CREATE TAG label;
ALTER TABLE db.t DROP BRANCH label;
-- error: InvalidStatementError

-- case: DROP TAG of a branch is refused
-- table: two
ALTER TABLE db.t CREATE BRANCH line;
ALTER TABLE db.t DROP TAG line;
-- error: InvalidStatementError

-- case: DROP TAG IF EXISTS of a branch is refused
-- table: two
ALTER TABLE db.t CREATE BRANCH line;
ALTER TABLE db.t DROP TAG IF EXISTS line;
-- error: InvalidStatementError

-- case: a version that is a number is a snapshot before it is a tag
-- table: two
ALTER TABLE db.t CREATE TAG `<snapshot 1>` AS OF VERSION <snapshot 2>;
SELECT count(*) AS n FROM db.t VERSION AS OF <snapshot 1>;
-- result:
--   n
--   3

-- case: a version that is a text is a branch or a tag
-- table: two
ALTER TABLE db.t CREATE TAG label AS OF VERSION <snapshot 1>;
SELECT id FROM db.t VERSION AS OF 'label';
-- result:
--   id
--   1
--   2
--   3

-- case: a version that is no snapshot is refused
-- table: two
SELECT id FROM db.t VERSION AS OF 77;
-- error: InvalidStatementError
