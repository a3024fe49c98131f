-- case: a whole partition goes
-- table: stores
DELETE FROM db.t WHERE store = 1;
-- counts: deleted 3
-- rows:
--   id | store | amount | note
--   3 | 2 | 30.00 | c
--   4 | 2 | 40.25 | d
--   6 | 3 | 60.00 | f
--   7 | null | 70.00 | g

-- case: the partition of nulls goes
-- table: stores
DELETE FROM db.t WHERE store IS NULL;
-- counts: deleted 1
-- rows:
--   id | store | amount | note
--   1 | 1 | 10.00 | a
--   2 | 1 | 20.50 | null
--   3 | 2 | 30.00 | c
--   4 | 2 | 40.25 | d
--   5 | 1 | 50.00 | e
--   6 | 3 | 60.00 | f

-- case: partitions go by inequality and the one of nulls stays
-- table: stores
DELETE FROM db.t WHERE store <> 1;
-- java: it removes the partition of nulls too
-- counts: deleted 3
-- rows:
--   id | store | amount | note
--   1 | 1 | 10.00 | a
--   2 | 1 | 20.50 | null
--   5 | 1 | 50.00 | e
--   7 | null | 70.00 | g

-- case: a part of a partition goes
-- table: stores
DELETE FROM db.t WHERE store = 2 AND amount > 35;
-- counts: deleted 1
-- rows:
--   id | store | amount | note
--   1 | 1 | 10.00 | a
--   2 | 1 | 20.50 | null
--   3 | 2 | 30.00 | c
--   5 | 1 | 50.00 | e
--   6 | 3 | 60.00 | f
--   7 | null | 70.00 | g

-- case: partition or row decides
-- table: stores
DELETE FROM db.t WHERE store = 3 OR note = 'a';
-- counts: deleted 2
-- rows:
--   id | store | amount | note
--   2 | 1 | 20.50 | null
--   3 | 2 | 30.00 | c
--   4 | 2 | 40.25 | d
--   5 | 1 | 50.00 | e
--   7 | null | 70.00 | g

-- case: rows of buckets go by their key
-- table: bucketed
DELETE FROM db.t WHERE id IN (1, 5, 8);
-- counts: deleted 3
-- rows:
--   id | v
--   2 | b
--   3 | c
--   4 | d
--   6 | f
--   7 | g

-- case: rows of buckets go by another column
-- table: bucketed
DELETE FROM db.t WHERE v >= 'f';
-- counts: deleted 3
-- rows:
--   id | v
--   1 | a
--   2 | b
--   3 | c
--   4 | d
--   5 | e

-- case: rows of truncated partitions go by prefix
-- table: truncated
DELETE FROM db.t WHERE code LIKE 'ab%';
-- counts: deleted 2
-- rows:
--   id | code
--   3 | xyz
--   4 | null
--   5 | ''

-- case: a prefix longer than the truncation decides by rows
-- table: truncated
DELETE FROM db.t WHERE startswith(code, 'abd');
-- counts: deleted 1
-- rows:
--   id | code
--   1 | abc
--   3 | xyz
--   4 | null
--   5 | ''

-- case: the empty text is a partition of its own
-- table: truncated
DELETE FROM db.t WHERE code = '';
-- counts: deleted 1
-- rows:
--   id | code
--   1 | abc
--   2 | abd
--   3 | xyz
--   4 | null

-- case: rows written before a column was added have NULL in it
-- table: evolved
DELETE FROM db.t WHERE extra IS NULL;
-- counts: deleted 3
-- rows:
--   id | w | p | extra
--   3 | c | 1 | 33

-- case: rows of several partition specs go at once
-- table: evolved
DELETE FROM db.t WHERE p = 1;
-- counts: deleted 2
-- rows:
--   id | w | p | extra
--   2 | b | 2 | null
--   4 | d | 2 | null

-- case: a promoted and a renamed column decide
-- table: evolved
DELETE FROM db.t WHERE id = 1 OR w = 'd';
-- counts: deleted 2
-- rows:
--   id | w | p | extra
--   2 | b | 2 | null
--   3 | c | 1 | 33

-- case: rows go from a branch only
-- table: branched
DELETE FROM db.t.branch_b WHERE id >= 2;
-- counts: deleted 2
-- rows:
--   id | v
--   1 | a
--   2 | b
--   3 | c
--   4 | main only
-- rows db.t.branch_b:
--   id | v
--   1 | a

-- case: rows of the main branch go and a branch keeps them
-- table: branched
DELETE FROM db.t WHERE id IN (1, 4);
-- counts: deleted 2
-- rows:
--   id | v
--   2 | b
--   3 | c
-- rows db.t.branch_b:
--   id | v
--   1 | a
--   2 | b
--   3 | c

-- case: deleting all rows of a branch leaves the main branch
-- table: branched
DELETE FROM db.t.branch_b WHERE true;
-- counts: deleted 3
-- rows:
--   id | v
--   1 | a
--   2 | b
--   3 | c
--   4 | main only
-- rows db.t.branch_b:
--   id | v

-- case: an unknown branch is refused
-- table: branched
DELETE FROM db.t.branch_nowhere WHERE id = 1;
-- error: RowlakeError
