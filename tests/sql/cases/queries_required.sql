-- case: a required field of a null struct is null in a filter
-- table: required_fields
SELECT id FROM db.t WHERE s.a IS NULL;
-- result:
--   id
--   2
--   4

-- case: a comparison with a required field leaves null structs out
-- table: required_fields_orc
SELECT id, s.a FROM db.t WHERE s.a > 5;
-- result:
--   id | a
--   1 | 10
--   3 | 30

-- case: required fields of null structs are read as null
-- table: required_fields_avro
SELECT s.a, s.b, s FROM db.t;
-- result:
--   a | b | s
--   10 | x | {a: 10, b: x}
--   30 | null | {a: 30, b: null}
--   null | null | null
