"""Blocks that are split into partial aggregates, and those that are not."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowlake.model.predicate import Leaf, Op
from rowlake.model.schema import TYPE_NAME, Schema
from rowlake.query.pushdown import Options, push_down

T = Schema(
    pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("x", pa.int32()),
            pa.field("s", pa.string()),
            pa.field("dec", pa.decimal128(9, 2)),
            pa.field("big", pa.decimal128(38, 2)),
            pa.field("f", pa.float32()),
            pa.field("st", pa.struct([("a", pa.int32())])),
            pa.field("uid", pa.binary(16), metadata={TYPE_NAME: b"uuid"}),
            pa.field("ns_time", pa.timestamp("ns")),
        ]
    )
)


def push(text):
    return push_down(
        text,
        lambda parts: T if parts == ("t",) else None,
        Options(view_prefix="v", aggregates=True),
    )


SPLIT = {
    "SELECT count(*) FROM t": (
        "SELECT coalesce(sum(`__partial_0`), 0L) AS `count(1)` FROM `v0` AS `t`"
    ),
    "SELECT COUNT(1) n FROM t": "SELECT coalesce(sum(`__partial_0`), 0L) n FROM `v0` AS `t`",
    "SELECT Sum(X) FROM t WHERE s = 'a'": (
        "SELECT CAST(sum(`__partial_0`) AS BIGINT) AS `sum(X)` FROM `v0` AS `t` "
    ),
    "SELECT s, max(t.id) FROM t GROUP BY s": (
        "SELECT s, max(`__partial_0`) AS `max(id)` FROM `v0` AS `t` GROUP BY s"
    ),
    "SELECT s AS k, sum(dec) / count(*) AS r FROM t GROUP BY k ORDER BY r DESC": (
        "SELECT s AS k, CAST(sum(`__partial_0`) AS DECIMAL(19, 2)) / "
        "coalesce(sum(`__partial_1`), 0L) AS r FROM `v0` AS `t` GROUP BY k ORDER BY r DESC"
    ),
    "SELECT avg(f) a, mean(x) b FROM t": (
        "SELECT (CAST(sum(`__partial_0`) AS DOUBLE) / nullif(sum(`__partial_1`), 0L)) a, "
        "(CAST(sum(`__partial_2`) AS DOUBLE) / nullif(sum(`__partial_3`), 0L)) b FROM `v0` AS `t`"
    ),
    "SELECT x FROM (SELECT x, count(s) c FROM t GROUP BY 1) WHERE c > 3": (
        "SELECT x FROM (SELECT x, coalesce(sum(`__partial_0`), 0L) c FROM `v0` AS `t` GROUP BY 1) "
        "WHERE c > 3"
    ),
    "SELECT round(sum(f) * 2, 1) z FROM t HAVING count(*) > 1 LIMIT 1": (
        "SELECT round(sum(`__partial_0`) * 2, 1) z FROM `v0` AS `t` "
        "HAVING coalesce(sum(`__partial_1`), 0L) > 1 LIMIT 1"
    ),
    "SELECT CASE WHEN s = 'a' THEN min(x) ELSE 0 END c FROM t GROUP BY s ORDER BY sum(x)": (
        "SELECT CASE WHEN s = 'a' THEN min(`__partial_0`) ELSE 0 END c FROM `v0` AS `t` "
        "GROUP BY s ORDER BY CAST(sum(`__partial_1`) AS BIGINT)"
    ),
}


@pytest.mark.parametrize(("text", "expected"), SPLIT.items(), ids=list(SPLIT))
def test_split(text, expected):
    found = push(text)
    assert found.text == expected
    assert found.scans[0].aggregation is not None


WHOLE = [
    "SELECT count(DISTINCT x) FROM t",
    "SELECT DISTINCT count(x) FROM t",
    "SELECT sum(x) FILTER (WHERE s = 'a') FROM t",
    "SELECT sum(x) OVER () FROM t",
    "SELECT stddev(x), count(*) FROM t",
    "SELECT my_sum(x) s, count(*) FROM t",
    "SELECT collect_list(s) l, count(*) FROM t",
    "SELECT sum(x + 1) FROM t",
    "SELECT sum(x) + 1 FROM t",
    "SELECT s, sum(x) FROM t",
    "SELECT s, id, sum(x) FROM t GROUP BY s",
    "SELECT sum(x) FROM t GROUP BY s, upper(s)",
    "SELECT sum(x) FROM t GROUP BY ROLLUP (s)",
    "SELECT sum(x) FROM t GROUP BY GROUPING SETS (s)",
    "SELECT s, sum(x) FROM t GROUP BY ALL",
    "SELECT sum(x) FROM t GROUP BY st.a",
    "SELECT sum(x) FROM t GROUP BY uid",
    "SELECT min(ns_time) FROM t",
    "SELECT sum(big) FROM t",
    "SELECT avg(dec) FROM t",
    "SELECT sum(s) FROM t",
    "SELECT sum(st.a) FROM t",
    "SELECT count(*) FROM t WHERE upper(s) = 'A'",
    "SELECT count(*) FROM t WHERE s LIKE 'a%b'",
    "SELECT count(*) FROM t WHERE id IN (SELECT 1)",
    "SELECT count(*) FROM t TABLESAMPLE (5 ROWS)",
    "SELECT count(*) FROM t, u",
    "SELECT count(*) FROM t JOIN u ON true",
    "SELECT count(*) FROM t LATERAL VIEW explode(array(1)) e",
    "SELECT *, count(*) OVER () FROM t",
    "SELECT sum(x) q FROM t ORDER BY f",
    "SELECT x FROM t",
    "SELECT count(*), (SELECT 1) FROM t",
]


@pytest.mark.parametrize("text", WHOLE)
def test_not_split(text):
    assert [scan.aggregation for scan in push(text).scans] == [None]


def test_partials_are_shared_and_described():
    found = push("SELECT s, avg(x) a, count(x) c, count(*) n FROM t WHERE id > 3 GROUP BY s")
    aggregation = found.scans[0].aggregation
    assert aggregation is not None
    assert aggregation.group_by == ("s",)
    assert [(p.function, p.column) for p in aggregation.partials] == [
        ("sum", "x"),
        ("count", "x"),
        ("count_all", None),
    ]
    assert aggregation.predicate == Leaf(("id",), Op.GT, (3,))
    assert not aggregation.from_metadata


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT count(*), min(x), max(s) FROM t", True),
        ("SELECT count(*), sum(x) FROM t", False),
        ("SELECT count(*) FROM t WHERE x = 1", False),
        ("SELECT count(*) FROM t GROUP BY s", False),
    ],
)
def test_counts_and_bounds_may_come_from_metadata(text, expected):
    aggregation = push(text).scans[0].aggregation
    assert aggregation is not None
    assert aggregation.from_metadata is expected
