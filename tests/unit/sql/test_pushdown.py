"""What is read of each lake table in a statement, and the text that Spark gets."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from rowlake.model.predicate import And, Leaf, Op, Or
from rowlake.model.schema import Schema
from rowlake.query.pushdown import Options, Rewritten, push_down
from rowlake.sqltext.names import Names

T = Schema(
    pa.schema(
        [
            ("id", pa.int64()),
            ("x", pa.int32()),
            ("s", pa.string()),
            ("d", pa.date32()),
            ("ts", pa.timestamp("us", "UTC")),
            ("st", pa.struct([("a", pa.int32()), ("B", pa.string())])),
            ("f", pa.float32()),
            ("b", pa.bool_()),
        ]
    )
)
U = Schema(pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.float64())]))
LAKE = {("ns", "t"): T, ("ns", "u"): U, ("ns", "a.b c"): U}


def lookup(parts):
    return LAKE.get(tuple(part.lower() for part in parts))


def push(text: str, **options: object) -> Rewritten:
    names = Names(zone="UTC")
    return push_down(text, lookup, Options(names, **{"view_prefix": "v", **options}))


def leaf(path: str, op: Op, *values: object) -> Leaf:
    return Leaf(tuple(path.split(".")), op, values)


TEXTS = {
    "SELECT a FROM ns.t": "SELECT a FROM `v0` AS `t`",
    "SELECT a FROM ns.t z": "SELECT a FROM `v0` z",
    "SELECT a FROM NS.T AS z WHERE z.x=1": "SELECT a FROM `v0` AS z WHERE z.x=1",
    "SELECT ns.t.x, t.s FROM ns.t": "SELECT t.x, t.s FROM `v0` AS `t`",
    "SELECT ns.t.* FROM ns.t": "SELECT t.* FROM `v0` AS `t`",
    "SELECT * FROM ns.`a.b c`": "SELECT * FROM `v0` AS `a.b c`",
    "SELECT * FROM ns.t VERSION AS OF 12 WHERE x = 1": "SELECT * FROM `v0` AS `t` WHERE x = 1",
    "SELECT * FROM ns.t FOR SYSTEM_TIME AS OF current_timestamp() - INTERVAL 1 DAY AS q": (
        "SELECT * FROM `v0` AS q"
    ),
    "SELECT * FROM ns.t TABLESAMPLE (5 ROWS), ns.u": (
        "SELECT * FROM `v0` TABLESAMPLE (5 ROWS) AS `t`, `v1` AS `u`"
    ),
    "SELECT * FROM ns.t JOIN o.u USING (id)": "SELECT * FROM `v0` AS `t` JOIN o.u USING (id)",
    "WITH t AS (SELECT 1) SELECT * FROM t": "WITH t AS (SELECT 1) SELECT * FROM t",
    "TABLE ns.t": "TABLE `v0`",
    "FROM ns.t SELECT x": "FROM `v0` AS `t` SELECT x",
    "EXPLAIN EXTENDED SELECT x FROM ns.t": "EXPLAIN EXTENDED SELECT x FROM `v0` AS `t`",
    "INSERT INTO other SELECT x FROM ns.t": "INSERT INTO other SELECT x FROM `v0` AS `t`",
    "SELECT 'ns.t', /* FROM ns.t */ x FROM ns.t -- FROM ns.t": (
        "SELECT 'ns.t', /* FROM ns.t */ x FROM `v0` AS `t` -- FROM ns.t"
    ),
    "SELECT extract(DAY FROM d), x IS DISTINCT FROM 3 FROM ns.t": (
        "SELECT extract(DAY FROM d), x IS DISTINCT FROM 3 FROM `v0` AS `t`"
    ),
    "SELECT *, _file FROM ns.t": "SELECT * EXCEPT (`t`.`_file`), _file FROM `v0` AS `t`",
    "SELECT * EXCEPT (x), _pos FROM ns.t": (
        "SELECT * EXCEPT (`t`.`_pos`, x), _pos FROM `v0` AS `t`"
    ),
    "FROM ns.t |> WHERE x > 1 |> SELECT s": "FROM `v0` AS `t` |> WHERE x > 1 |> SELECT s",
    "SELECT * FROM range(3), ns.u": "SELECT * FROM range(3), `v0` AS `u`",
    "SELECT * FROM VALUES (1, 2), (3, 4) AS w(a, c), ns.u": (
        "SELECT * FROM VALUES (1, 2), (3, 4) AS w(a, c), `v0` AS `u`"
    ),
    "SELECT x FROM ns.t PIVOT (sum(x) FOR s IN ('a', 'b'))": (
        "SELECT x FROM `v0` AS `t` PIVOT (sum(x) FOR s IN ('a', 'b'))"
    ),
    "SELECT e FROM ns.t LATERAL VIEW explode(array(x)) w AS e, ff WHERE e = 1": (
        "SELECT e FROM `v0` AS `t` LATERAL VIEW explode(array(x)) w AS e, ff WHERE e = 1"
    ),
    "SELECT x FROM ns.t EXCEPT SELECT id FROM ns.u": (
        "SELECT x FROM `v0` AS `t` EXCEPT SELECT id FROM `v1` AS `u`"
    ),
    "SELECT ((SELECT max(x) FROM ns.t) + 1) FROM ns.u": (
        "SELECT ((SELECT max(x) FROM `v0` AS `t`) + 1) FROM `v1` AS `u`"
    ),
}


@pytest.mark.parametrize(("text", "expected"), TEXTS.items(), ids=list(TEXTS))
def test_only_the_references_change(text, expected):
    assert push(text).text == expected


COLUMNS = {
    "SELECT x FROM ns.t": [("x",)],
    "SELECT X, T.S FROM ns.t": [("x", "s")],
    "SELECT * FROM ns.t": [None],
    "SELECT t.* FROM ns.t": [None],
    "SELECT z.* FROM ns.t z, ns.u": [None, ()],
    "SELECT count(*) FROM ns.t": [()],
    "SELECT count(t.*) FROM ns.t": [None],
    "SELECT x * 2 FROM ns.t": [("x",)],
    "SELECT struct(*) FROM ns.t": [None],
    "SELECT st.a FROM ns.t": [("st",)],
    "SELECT t.st.a FROM ns.t": [("st",)],
    "SELECT sum(x) FROM ns.t WHERE s = 'a' GROUP BY d HAVING max(f) > 1 ORDER BY min(id)": [
        ("id", "x", "s", "d", "f")
    ],
    "SELECT t.x, u.v FROM ns.t JOIN ns.u ON t.id = u.id": [("id", "x"), ("id", "v")],
    "SELECT k FROM ns.t JOIN ns.u USING (id)": [("id",), ("id", "k")],
    "SELECT k FROM ns.t NATURAL JOIN ns.u": [None, None],
    "SELECT x FROM ns.t WHERE EXISTS (SELECT * FROM ns.u WHERE u.id = t.id)": [
        ("id", "x"),
        ("id",),
    ],
    "SELECT x FROM ns.t WHERE id IN (SELECT id FROM ns.u)": [("id", "x"), ("id",)],
    "SELECT x FROM (SELECT * FROM ns.t)": [None],
    "SELECT q FROM ns.t AS w(q, r)": [None],
    "SELECT x, _pos, _file FROM ns.t": [("x", "_file", "_pos")],
    "SELECT * FROM ns.t PIVOT (sum(x) FOR s IN ('a'))": [None],
    "SELECT id FROM ns.t ORDER BY s": [("id", "s")],
    "SELECT id FROM ns.t UNION SELECT id FROM ns.u": [("id",), ("id",)],
    "TABLE ns.t": [None],
    "SELECT x FROM ns.t, LATERAL (SELECT t.s, k FROM ns.u WHERE u.id = t.id)": [
        ("id", "x", "s"),
        ("id", "k"),
    ],
    "WITH c AS (SELECT s FROM ns.t) SELECT x FROM c": [("s",)],
    "SELECT transform(array(x), e -> e + id) FROM ns.t": [("id", "x")],
    "SELECT `X` FROM ns.t": [("x",)],
    "SELECT x FROM ns.t WHERE b": [("x", "b")],
}


@pytest.mark.parametrize(("text", "expected"), COLUMNS.items(), ids=list(COLUMNS))
def test_columns_needed(text, expected):
    assert [scan.columns for scan in push(text).scans] == expected


UTC = dt.timezone.utc
CONDITIONS = {
    "x = 1": leaf("x", Op.EQ, 1),
    "1 < x": leaf("x", Op.GT, 1),
    "x <> 1": leaf("x", Op.NE, 1),
    "(x) >= (-1)": leaf("x", Op.GE, -1),
    "x > 1.5": leaf("x", Op.GT, 1),
    "x <= 1.5": leaf("x", Op.LE, 1),
    "x = 1.5": Or(()),
    "x <> 1.5": leaf("x", Op.NOT_NULL),
    "x < 3000000000": leaf("x", Op.NOT_NULL),
    "x > 3000000000": Or(()),
    "x = 1e3": leaf("x", Op.EQ, 1000),
    "x = '1'": None,
    "s = 1": None,
    "s = 'a'": leaf("s", Op.EQ, "a"),
    r"s = 'it\'s'": leaf("s", Op.EQ, "it's"),
    "s = 'it''s'": leaf("s", Op.EQ, "it's"),
    "s = x": None,
    "upper(s) = 'A'": None,
    "s || 'a' = 'b'": None,
    "x + 1 = 2": None,
    "x = 1 + 1": None,
    "x IN (1, 2, 2)": leaf("x", Op.IN, 1, 2),
    "x IN (1, NULL)": leaf("x", Op.EQ, 1),
    "x NOT IN (1, 2)": leaf("x", Op.NOT_IN, 1, 2),
    "x NOT IN (1, NULL)": Or(()),
    "x IN (1, y)": None,
    "x IN (SELECT 1)": None,
    "s IN ('a')": leaf("s", Op.EQ, "a"),
    "x BETWEEN 1 AND 3": And((leaf("x", Op.GE, 1), leaf("x", Op.LE, 3))),
    "x NOT BETWEEN 1 AND 3": Or((leaf("x", Op.LT, 1), leaf("x", Op.GT, 3))),
    "x BETWEEN 1 AND 3 AND s = 'a'": And(
        (leaf("x", Op.GE, 1), leaf("x", Op.LE, 3), leaf("s", Op.EQ, "a"))
    ),
    "s LIKE 'ab%'": leaf("s", Op.STARTS_WITH, "ab"),
    "s NOT LIKE 'ab%'": leaf("s", Op.NOT_STARTS_WITH, "ab"),
    "s LIKE 'ab%c'": leaf("s", Op.STARTS_WITH, "ab"),
    "s NOT LIKE 'ab%c'": None,
    "s LIKE 'ab'": leaf("s", Op.EQ, "ab"),
    "s LIKE '%'": leaf("s", Op.NOT_NULL),
    "s LIKE '%b'": leaf("s", Op.NOT_NULL),
    r"s LIKE 'a\\%b%'": None,
    "s LIKE 'a%' ESCAPE '/'": None,
    "s RLIKE 'a'": None,
    "startswith(s, 'a')": leaf("s", Op.STARTS_WITH, "a"),
    "x IS NULL": leaf("x", Op.IS_NULL),
    "x IS NOT NULL": leaf("x", Op.NOT_NULL),
    "isnull(x)": leaf("x", Op.IS_NULL),
    "isnotnull(x)": leaf("x", Op.NOT_NULL),
    "isnan(f)": leaf("f", Op.IS_NAN),
    "NOT isnan(f)": Or((leaf("f", Op.NOT_NAN), leaf("f", Op.IS_NULL))),
    "x <=> 1": leaf("x", Op.EQ, 1),
    "x <=> NULL": leaf("x", Op.IS_NULL),
    "NOT x <=> 1": Or((leaf("x", Op.NE, 1), leaf("x", Op.IS_NULL))),
    "x IS DISTINCT FROM 1": Or((leaf("x", Op.NE, 1), leaf("x", Op.IS_NULL))),
    "x = NULL": Or(()),
    "b": leaf("b", Op.EQ, True),
    "NOT b": leaf("b", Op.EQ, False),
    "b = false": leaf("b", Op.EQ, False),
    "b IS NOT TRUE": Or((leaf("b", Op.EQ, False), leaf("b", Op.IS_NULL))),
    "true": None,
    "false": Or(()),
    "1 = 0": Or(()),
    "NOT (x = 1 OR s = 'a')": And((leaf("x", Op.NE, 1), leaf("s", Op.NE, "a"))),
    "NOT (x = 1 AND s = 'a')": Or((leaf("x", Op.NE, 1), leaf("s", Op.NE, "a"))),
    "x = 1 OR x = 2 AND b": Or(
        (leaf("x", Op.EQ, 1), And((leaf("x", Op.EQ, 2), leaf("b", Op.EQ, True))))
    ),
    "x = 1 OR upper(s) = 'A'": None,
    "x = 1 AND upper(s) = 'A'": leaf("x", Op.EQ, 1),
    "NOT (x = 1 AND upper(s) = 'A')": None,
    "NOT (x = 1 OR upper(s) = 'A')": leaf("x", Op.NE, 1),
    "CASE WHEN x = 1 OR x = 2 THEN b ELSE x = 3 END": None,
    "x = 1 OR CASE WHEN b THEN true END": None,
    "x = 1 = true": None,
    "x = 1 IS NULL": None,
    "(SELECT true OR x = 1)": None,
    "d = DATE'2024-05-06'": leaf("d", Op.EQ, dt.date(2024, 5, 6)),
    "d >= '2024-05-06'": leaf("d", Op.GE, dt.date(2024, 5, 6)),
    "d = '2024-5-6'": None,
    "ts < TIMESTAMP '2024-05-06 07:08:09.5'": leaf(
        "ts", Op.LT, dt.datetime(2024, 5, 6, 7, 8, 9, 500_000, UTC)
    ),
    "ts < '2024-05-06T07:08:09+02:00'": leaf("ts", Op.LT, dt.datetime(2024, 5, 6, 5, 8, 9, 0, UTC)),
    "ts >= DATE '2024-05-06'": leaf("ts", Op.GE, dt.datetime(2024, 5, 6, tzinfo=UTC)),
    "st.a = 3": leaf("st.a", Op.EQ, 3),
    "st.b = 'q'": leaf("st.B", Op.EQ, "q"),
    "t.st.a = 3": leaf("st.a", Op.EQ, 3),
    "ns.t.x = 3": leaf("x", Op.EQ, 3),
    "`x` = 3": leaf("x", Op.EQ, 3),
    "f = 0.5": leaf("f", Op.EQ, 0.5),
    "f = 0.1": Or(()),
    "f = 16777217": None,
    "id = 9007199254740993D": None,
    "id > 9999999999999999999": Or(()),
    "x = :p": leaf("x", Op.EQ, 5),
    "x = :missing": None,
    "nope = 1": None,
    "u.x = 1": None,
}


@pytest.mark.parametrize(("text", "expected"), CONDITIONS.items(), ids=list(CONDITIONS))
def test_conditions_pushed(text, expected):
    scan = push(f"SELECT 1 FROM ns.t WHERE {text}", arguments={"p": 5}).scans[-1]
    assert scan.target.table in (("ns", "t"), ("t",))
    assert scan.predicate == expected


def test_float_comparisons_take_the_neighbours_into_account():
    def pushed(text):
        return push(f"SELECT 1 FROM ns.t WHERE {text}").scans[0].predicate

    nearest = 0.10000000149011612  # the float above 0.1
    assert pushed("f < 0.1") == leaf("f", Op.LT, nearest)
    assert pushed("f <= 0.1") == leaf("f", Op.LT, nearest)
    assert pushed("f > 0.1") == leaf("f", Op.GE, nearest)


def test_decimals_are_compared_on_their_own_grid():
    schema = Schema(pa.schema([("c", pa.decimal128(9, 2))]))

    def pushed(text):
        found = push_down(f"SELECT 1 FROM t WHERE {text}", lambda _: schema)
        return found.scans[0].predicate

    assert pushed("c = 1.10") == leaf("c", Op.EQ, Decimal("1.10"))
    assert pushed("c = 1.105") == Or(())
    assert pushed("c < 1.105") == leaf("c", Op.LE, Decimal("1.10"))
    assert pushed("c >= -1.105") == leaf("c", Op.GT, Decimal("-1.11"))
    assert pushed("c < 99999999999") == leaf("c", Op.NOT_NULL)
    assert pushed("c = 1.1D") is None


def test_zones():
    schema = Schema(pa.schema([("z", pa.timestamp("us", "UTC")), ("n", pa.timestamp("us"))]))

    def pushed(text, zone):
        options = Options(Names(zone=zone))
        return (
            push_down(f"SELECT 1 FROM t WHERE {text}", lambda _: schema, options).scans[0].predicate
        )

    winter = dt.datetime(2024, 1, 1, 5, tzinfo=UTC)
    assert pushed("z = TIMESTAMP'2024-01-01'", "America/New_York") == leaf("z", Op.EQ, winter)
    assert pushed("z = TIMESTAMP'2024-01-01'", None) is None
    assert pushed("z = TIMESTAMP'2024-01-01'", "Mars/Base") is None
    naive = dt.datetime(2024, 1, 1)
    assert pushed("n = TIMESTAMP_NTZ'2024-01-01'", None) == leaf("n", Op.EQ, naive)
    assert pushed("n = TIMESTAMP'2024-01-01'", "America/New_York") is None
    assert pushed("n = TIMESTAMP'2024-01-01'", "UTC") == leaf("n", Op.EQ, naive)


JOINS = {
    "ns.t JOIN ns.u ON t.id = u.id AND t.x = 1 AND u.v > 2": ("x", "v"),
    "ns.t LEFT JOIN ns.u ON t.id = u.id AND t.x = 1 AND u.v > 2": (None, "v"),
    "ns.t RIGHT JOIN ns.u ON t.id = u.id AND t.x = 1 AND u.v > 2": ("x", None),
    "ns.t FULL JOIN ns.u ON t.id = u.id AND t.x = 1 AND u.v > 2": (None, None),
    "ns.t LEFT SEMI JOIN ns.u ON t.id = u.id AND t.x = 1 AND u.v > 2": ("x", "v"),
    "ns.t LEFT ANTI JOIN ns.u ON t.id = u.id AND t.x = 1 AND u.v > 2": (None, "v"),
    "ns.t CROSS JOIN ns.u WHERE t.x = 1 AND u.v > 2": ("x", "v"),
    "ns.t, ns.u WHERE x = 1 AND v > 2": ("x", "v"),
    "ns.t LEFT JOIN ns.u ON t.id = u.id WHERE t.x = 1 AND u.v > 2": ("x", "v"),
    "ns.t LEFT JOIN ns.u ON t.id = u.id WHERE t.x IS NULL AND u.v IS NULL": ("x", None),
    "ns.t RIGHT JOIN ns.u ON t.id = u.id WHERE t.x IS NULL AND u.v IS NULL": (None, "v"),
    "ns.t FULL JOIN ns.u ON t.id = u.id WHERE t.x IS NULL AND u.v > 2": (None, "v"),
    "ns.t LEFT ANTI JOIN ns.u ON t.id = u.id WHERE x = 1": ("x", None),
    "ns.t JOIN ns.u USING (id) WHERE id = 1": (None, None),
    "ns.t JOIN ns.u USING (id) WHERE t.id = 1": ("id", None),
    "ns.t JOIN ns.u ON true WHERE id = 1": (None, None),
    "(ns.t JOIN ns.u ON t.x = 1) AS q WHERE q.v = 2": ("x", None),
    "other o LEFT JOIN (ns.t JOIN ns.u ON u.v = 2) ON t.x = 1 AND o.y = 1": ("x", "v"),
}


@pytest.mark.parametrize(("text", "expected"), JOINS.items(), ids=list(JOINS))
def test_joins_only_filter_where_no_row_is_missed(text, expected):
    scans = push(f"SELECT 1 FROM {text}").scans
    columns = [scan.predicate.path[0] if scan.predicate else None for scan in scans]
    assert tuple(columns) == expected


def test_case_sensitive_sessions_tell_names_apart():
    schema = Schema(pa.schema([("a", pa.int32()), ("A", pa.int32())]))
    strict = Options(Names(case_sensitive=True))
    found = push_down("SELECT 1 FROM t WHERE A = 1", lambda _: schema, strict)
    assert found.scans[0].predicate == leaf("A", Op.EQ, 1)
    loose = push_down("SELECT 1 FROM t WHERE A = 1", lambda _: schema)
    assert loose.scans[0].predicate is None


def test_where_a_name_is_read_at():
    def target(name):
        return push(f"SELECT * FROM {name}").scans[0]

    assert target("ns.t.branch_b").target.branch == "b"
    assert target("ns.t.tag_v1").target.tag == "v1"
    assert target("ns.t.snapshot_id_12").target.snapshot_id == 12
    assert target("ns.t.snapshots").target.metadata_table == "snapshots"
    travel = target("ns.t TIMESTAMP AS OF date_sub(now(), 1) q").travel
    assert travel is not None
    assert (travel.kind, travel.text) == ("timestamp", "date_sub(now(), 1)")
    assert target("ns.t FOR VERSION AS OF 'audit'").travel.text == "'audit'"


def test_time_travel_pushes_against_the_schema_of_then():
    old = Schema(pa.schema([("was", pa.int32()), ("x", pa.int32())]))
    text = "SELECT was FROM ns.t VERSION AS OF 3 WHERE was = 1"
    assert push(text).scans[0].columns is None
    scan = push(text, schema_of=lambda target, travel: old).scans[0]
    assert scan.columns == ("was",)
    assert scan.predicate == leaf("was", Op.EQ, 1)


def test_sampled_and_renamed_tables_are_not_filtered():
    assert push("SELECT 1 FROM ns.t TABLESAMPLE (5 ROWS) WHERE x = 1").scans[0].predicate is None
    assert push("SELECT 1 FROM ns.t AS q(x, y) WHERE x = 1").scans[0].predicate is None


def test_common_table_expressions_hide_tables_where_they_are_visible():
    lake = {("t",): T}
    text = "WITH t AS (SELECT * FROM t) SELECT * FROM t JOIN (WITH u AS (SELECT 1) SELECT * FROM u)"
    found = push_down(text, lambda parts: lake.get(parts), Options(view_prefix="v"))
    assert found.text.startswith("WITH t AS (SELECT * FROM `v0` AS `t`) SELECT * FROM t JOIN")
    assert len(found.scans) == 1


def test_positional_arguments_are_taken_in_order():
    found = push("SELECT ? FROM ns.t WHERE x = ? AND s = ?", arguments=[1, 2, "a"])
    assert found.scans[0].predicate == And((leaf("x", Op.EQ, 2), leaf("s", Op.EQ, "a")))
