"""Random queries, whole and pushed down: Spark gives the same rows, names and types.

No lake is needed: the scans that push-down asks for are made by Spark itself from two frames, rows
that a predicate does not select left out and columns that are not needed missing.
"""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal

import pyarrow as pa
import pytest

from rowlake.model.predicate import And, Leaf, Op, Or, Predicate
from rowlake.model.schema import Schema
from rowlake.query.pushdown import Options, Scan, push_down
from rowlake.sqltext.lexer import quote
from rowlake.sqltext.names import Names

ZONE = "America/New_York"
T = Schema(
    pa.schema(
        [
            ("id", pa.int64()),
            ("x", pa.int32()),
            ("s", pa.string()),
            ("d", pa.date32()),
            ("ts", pa.timestamp("us", "UTC")),
            ("dec", pa.decimal128(9, 2)),
            ("f", pa.float32()),
            ("b", pa.bool_()),
            ("st", pa.struct([("a", pa.int32())])),
        ]
    )
)
U = Schema(pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.float64())]))
LAKE = {("t",): T, ("u",): U}
T_DDL = (
    "id bigint, x int, s string, d date, ts timestamp, dec decimal(9,2), f float, b boolean, "
    "st struct<a:int>"
)
NAN = float("nan")
UTC = dt.timezone.utc
T_VALUES = [
    [None, 1, 2, 3, 2**40],
    [None, -1, 0, 1, 2],
    [None, "", "a", "ab", "abc"],
    [None, dt.date(2024, 1, 1), dt.date(2024, 3, 10)],
    [None, dt.datetime(2024, 1, 1, 5, tzinfo=UTC), dt.datetime(2024, 3, 10, 7, 30, tzinfo=UTC)],
    [None, Decimal("1.10"), Decimal("-2.50")],
    [None, NAN, -0.0, 0.0, 0.1, 1.5],
    [None, True, False],
    [None, (1,), (None,), (2,)],
]
U_VALUES = [[None, 1, 2, 3], [None, "a", "q"], [None, NAN, 0.0, 1.5, -2.0]]
T_CONDITIONS = [
    "t.x = 1", "t.x > 0.5", "t.x IS NULL", "t.id IN (1, 2, NULL)", "t.id NOT IN (1, NULL)",
    "t.s LIKE 'a%'", "t.s NOT LIKE 'ab%'", "t.d >= '2024-02-01'", "t.x NOT IN (1, 2)",
    "t.ts < TIMESTAMP'2024-03-10 02:30:00'", "t.ts = TIMESTAMP'2024-01-01'", "t.dec > 1.095",
    "t.f > 0.1", "t.f = 0.1", "t.f <= 0", "isnan(t.f)", "NOT isnan(t.f)", "t.b", "NOT t.b",
    "t.st.a = 1", "t.st.a IS NULL", "t.x <=> NULL", "t.x BETWEEN 0 AND 1", "upper(t.s) = 'AB'",
    "t.ts >= DATE'2024-01-01'", "t.f <> 1.5", "t.b IS NOT TRUE", "t.id > 2.5D",
]  # fmt: skip
U_CONDITIONS = ["u.v > 0", "u.k = 'a'", "u.k IS NULL", "isnan(u.v)", "NOT (u.k = 'q' OR u.v < 0)"]


def condition(pick: random.Random, pool: list[str]) -> str:
    text = pick.choice(pool)
    for _ in range(pick.randrange(3)):
        word, no = pick.choice(["AND", "OR"]), pick.choice(["", "", "NOT "])
        text = f"({text} {word} {no}({pick.choice(pool)}))"
    return text


def query(pick: random.Random, shape: int) -> str:
    on_t, on_u = condition(pick, T_CONDITIONS), condition(pick, U_CONDITIONS)
    on_both, on_more = (condition(pick, T_CONDITIONS + U_CONDITIONS) for _ in range(2))
    join = pick.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    one_sided = pick.choice(["SEMI", "ANTI"])
    shapes = [
        f"SELECT id, s FROM t WHERE {on_t}",
        f"SELECT t.id, u.k FROM t {join} u ON t.id = u.id AND {on_both} WHERE {on_more}",
        f"SELECT t.x FROM t LEFT {one_sided} JOIN u ON t.id = u.id AND {on_both} WHERE {on_t}",
        f"SELECT * FROM t WHERE EXISTS (SELECT * FROM u WHERE u.id = t.id AND {on_u}) AND {on_t}",
        f"SELECT id FROM t WHERE id IN (SELECT id FROM u WHERE {on_u}) OR {on_t} "
        f"UNION ALL SELECT id FROM u WHERE {on_u}",
        f"WITH c AS (SELECT t.* FROM t WHERE {on_t}) "
        f"SELECT c.id, u.v FROM c {join} u ON c.id = u.id WHERE {on_u} AND c.x > 0",
        f"SELECT t.id, t.x FROM (SELECT * FROM t) t {join} u ON t.id = u.id WHERE {on_more}",
        f"SELECT s, count(*), sum(x), min(f), max(ts), avg(x) q, sum(dec), count(dec), max(s), "
        f"min(b) FROM t WHERE {on_t} GROUP BY s",
        f"SELECT count(*), max(id), sum(id) c FROM t WHERE {on_t}",
    ]
    return shapes[shape % len(shapes)]


def literal(value: object) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP'{value:%Y-%m-%d %H:%M:%S}Z'"
    if isinstance(value, dt.date):
        return f"DATE'{value}'"
    return f"DOUBLE('{value}')" if isinstance(value, float) else f"{value}"


def text_of(predicate: Predicate) -> str:
    """Return a predicate in Spark SQL."""
    if isinstance(predicate, Leaf):
        return leaf_text(predicate)
    empty, word = ("true", " AND ") if isinstance(predicate, And) else ("false", " OR ")
    assert isinstance(predicate, (And, Or))
    return f"({word.join(map(text_of, predicate.parts))})" if predicate.parts else empty


def leaf_text(leaf: Leaf) -> str:
    column = ".".join(map(quote, leaf.path))
    values = ", ".join(map(literal, leaf.values))
    return {
        Op.IS_NULL: f"{column} IS NULL",
        Op.NOT_NULL: f"{column} IS NOT NULL",
        Op.IS_NAN: f"isnan({column})",
        Op.NOT_NAN: f"({column} IS NOT NULL AND NOT isnan({column}))",
        Op.STARTS_WITH: f"startswith({column}, {values})",
        Op.NOT_STARTS_WITH: f"NOT startswith({column}, {values})",
        Op.IN: f"{column} IN ({values})",
        Op.NOT_IN: f"{column} NOT IN ({values})",
    }.get(leaf.op, f"{column} {leaf.op.value} {values}")


FUNCTIONS = {"count_all": "count(1)", "count": "count({})", "min": "min({})", "max": "max({})",
             "sum": "sum({})"}  # fmt: skip


def scanned(frame, scan: Scan):
    """Return what a scan is allowed to return."""
    split = scan.aggregation
    predicate = scan.predicate if split is None else split.predicate
    if predicate is not None:
        frame = frame.where(text_of(predicate))
    if split is None:
        return frame if scan.columns is None else frame.select(*map(quote, scan.columns))
    groups = [*map(quote, split.group_by), "coalesce(id, 0) % 2"]  # two tasks
    partials = [
        f"{FUNCTIONS[p.function].format(quote(p.column or ''))} AS {quote(p.name)}"
        for p in split.partials
    ]
    shown = ", ".join([*groups[:-1], *partials])
    spark = frame.sparkSession
    return spark.sql(f"SELECT {shown} FROM {{rows}} GROUP BY {', '.join(groups)}", rows=frame)


@pytest.fixture(scope="module")
def frames(spark):
    pick = random.Random(5)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    rows = [tuple(map(pick.choice, T_VALUES)) for _ in range(40)]
    others = [tuple(map(pick.choice, U_VALUES)) for _ in range(20)]
    found = {
        ("t",): spark.createDataFrame(rows, T_DDL).coalesce(1).cache(),
        ("u",): spark.createDataFrame(others, "id bigint, k string, v double").coalesce(1).cache(),
    }
    for name, frame in found.items():
        frame.createOrReplaceTempView(name[0])
    yield found
    for name, frame in found.items():
        spark.catalog.dropTempView(name[0])
        frame.unpersist()
    spark.conf.set("spark.sql.session.timeZone", before)


def rows_of(frame) -> list[str]:
    """Return rows in an order of their own; -0.0 is 0.0, as a tie of the two may go either way."""
    return sorted(
        repr([value + 0.0 if isinstance(value, float) else value for value in row])
        for row in frame.collect()
    )


@pytest.mark.parametrize("seed", range(36))
def test_pushed_down_queries_mean_the_same(spark, frames, seed):
    text = query(random.Random(seed), seed)
    options = Options(Names(zone=ZONE), view_prefix="scan_", aggregates=True)
    found = push_down(text, LAKE.get, options)
    over = {scan.view: scanned(frames[scan.target.table], scan) for scan in found.scans}
    rewritten = found.text
    for view in over:
        rewritten = rewritten.replace(quote(view), "{" + view + "}")
    expected, pushed = spark.sql(text), spark.sql(rewritten, **over)
    assert pushed.dtypes == expected.dtypes
    assert rows_of(pushed) == rows_of(expected), (text, found)
