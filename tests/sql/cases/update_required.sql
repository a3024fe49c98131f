-- case: a field beside a required one is set where the struct is there
-- table: required_fields
UPDATE db.t SET s.b = 'y' WHERE s.a = 10;
-- counts: updated 1
-- rows:
--   id | s
--   1 | {a: 10, b: y}
--   2 | null
--   3 | {a: 30, b: null}
--   4 | null

-- case: a struct with a required field is set to null
-- table: required_fields_orc
UPDATE db.t SET s = NULL WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | s
--   1 | null
--   2 | null
--   3 | {a: 30, b: null}

-- case: rows beside null structs with required fields are changed
-- table: required_fields_avro
UPDATE db.t SET id = id + 10 WHERE s.a IS NOT NULL;
-- counts: updated 2
-- rows:
--   id | s
--   11 | {a: 10, b: x}
--   13 | {a: 30, b: null}
--   2 | null
