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
