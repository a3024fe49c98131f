-- case: a field of a struct is set and its siblings stay
-- table: nested
UPDATE db.t SET s.a = s.a + 1 WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | s | tags | m
--   1 | {a: 11, b: x, in: {x: 1, y: 1.5}} | [p, q] | [k -> 1]
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: several fields of a struct are set
-- table: nested
UPDATE db.t SET s.a = 0, s.b = 'new' WHERE id IN (1, 2);
-- counts: updated 2
-- rows:
--   id | s | tags | m
--   1 | {a: 0, b: new, in: {x: 1, y: 1.5}} | [p, q] | [k -> 1]
--   2 | {a: 0, b: new, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: a field of a struct in a struct is set
-- table: nested
UPDATE db.t SET s.in.x = 99 WHERE id = 4;
-- counts: updated 1
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: x, in: {x: 1, y: 1.5}} | [p, q] | [k -> 1]
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 99, y: null}} | [null, q] | []

-- case: setting a field of a NULL struct makes a struct
-- table: nested
UPDATE db.t SET s.a = 5 WHERE id = 3;
-- counts: updated 1
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: x, in: {x: 1, y: 1.5}} | [p, q] | [k -> 1]
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | {a: 5, b: null, in: null} | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: setting a field of a NULL struct in a struct makes one
-- table: nested
UPDATE db.t SET s.in.x = 5 WHERE id = 2;
-- counts: updated 1
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: x, in: {x: 1, y: 1.5}} | [p, q] | [k -> 1]
--   2 | {a: 20, b: null, in: {x: 5, y: null}} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: a whole struct is set
-- table: nested
UPDATE db.t SET s = named_struct('a', 1, 'b', 'w', 'in', named_struct('x', 2, 'y', 3.0D)) WHERE id = 3;
-- counts: updated 1
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: x, in: {x: 1, y: 1.5}} | [p, q] | [k -> 1]
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | {a: 1, b: w, in: {x: 2, y: 3.0}} | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: a struct with fields in another order is set by name
-- table: nested
UPDATE db.t SET s = named_struct('b', 'w', 'in', named_struct('y', 3.0D, 'x', 2), 'a', 1) WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | s | tags | m
--   1 | {a: 1, b: w, in: {x: 2, y: 3.0}} | [p, q] | [k -> 1]
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: a struct that lacks a field is refused
-- table: nested
UPDATE db.t SET s = named_struct('a', 1, 'b', 'w') WHERE id = 1;
-- error: SchemaMismatchError

-- case: a struct with one field too many is refused
-- table: nested
UPDATE db.t SET s = named_struct('a', 1, 'b', 'w', 'in', NULL, 'more', 1) WHERE id = 1;
-- error: SchemaMismatchError

-- case: values of a struct are cast as columns are
-- table: nested
UPDATE db.t SET s = named_struct('a', 1L, 'b', 2, 'in', named_struct('x', 2.5D, 'y', 3)) WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | s | tags | m
--   1 | {a: 1, b: 2, in: {x: 2, y: 3.0}} | [p, q] | [k -> 1]
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: a struct becomes NULL
-- table: nested
UPDATE db.t SET s = NULL WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | s | tags | m
--   1 | null | [p, q] | [k -> 1]
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: a struct and its field cannot both be set
-- table: nested
UPDATE db.t SET s.a = 1, s = NULL;
-- error: InvalidStatementError

-- case: a field is set once
-- table: nested
UPDATE db.t SET s.a = 1, s.a = 2;
-- error: InvalidStatementError

-- case: an unknown field cannot be set
-- table: nested
UPDATE db.t SET s.nothing = 1;
-- error: InvalidStatementError

-- case: an alias stands before a nested field
-- table: nested
UPDATE db.t AS x SET x.s.a = x.s.a * 2, x.s.in.y = 0.5D WHERE x.s.a = 10;
-- counts: updated 1
-- rows:
--   id | s | tags | m
--   1 | {a: 20, b: x, in: {x: 1, y: 0.5}} | [p, q] | [k -> 1]
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: an array and a map are set
-- table: nested
UPDATE db.t SET tags = array('new', NULL), m = map('z', 26) WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: x, in: {x: 1, y: 1.5}} | [new, null] | [z -> 26]
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: an array is computed from the old one
-- table: nested
UPDATE db.t SET tags = transform(tags, x -> upper(x)), m = map_concat(m, map('n', 0)) WHERE id <> 3;
-- counts: updated 3
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: x, in: {x: 1, y: 1.5}} | [P, Q] | [k -> 1, n -> 0]
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3, n -> 0]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, Q] | [n -> 0]

-- case: an element of an array cannot be set
-- table: nested
UPDATE db.t SET tags[0] = 'x';
-- error: InvalidStatementError

-- case: an array of numbers is stored as one of texts
-- table: nested
UPDATE db.t SET tags = array(1, 2) WHERE id = 1;
-- counts: updated 1
-- rows:
--   id | s | tags | m
--   1 | {a: 10, b: x, in: {x: 1, y: 1.5}} | [1, 2] | [k -> 1]
--   2 | {a: 20, b: null, in: null} | [] | [k -> 2, l -> 3]
--   3 | null | null | null
--   4 | {a: 40, b: z, in: {x: 4, y: null}} | [null, q] | []

-- case: an array of texts is not stored as a map
-- table: nested
UPDATE db.t SET m = array('a');
-- error: SchemaMismatchError
