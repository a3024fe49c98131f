"""Statistics: what they rule out, and that nothing they say or lack loses a row."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.delta.stats_json import Leaf as StatsLeaf
from rowlake.delta.stats_json import read_leaves, row_counts
from rowlake.model.predicate import Leaf, Op
from rowlake.query.partial_aggregates import answered_by_metadata
from rowlake.scan.aggregate import Aggregate
from rowlake.verbs.read import Request, planned
from tests.delta_logs import HandMade, column, metadata

UTC = datetime.timezone.utc


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        yield found


def one_column(tmp_path, kind, values, stats, **field):
    made = HandMade(tmp_path / "t").create(metadata([column("c", kind, **field)]))
    made.commit(made.add("f.parquet", pa.table({"c": values}), stats=stats))
    return made


def bounds(low, high, nulls=0, rows=2, **more):
    return json.dumps(
        {
            "numRecords": rows,
            "minValues": {"c": low},
            "maxValues": {"c": high},
            "nullCount": {"c": nulls},
            **more,
        }
    )


def keeps(lake, made, op, *values):
    plan = planned(lake.table(made.name).handle, Request(predicate=Leaf(("c",), op, values))).plan
    return bool(plan.file_count)


TIME = datetime.datetime(2024, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)
MILLISECOND = datetime.timedelta(milliseconds=1)
CASES = [
    ("long", pa.array([3, 5]), bounds(3, 5), (4, 5), (2, 6)),
    ("byte", pa.array([3, 5], pa.int8()), bounds(3, 5), (4, 5), (2, 6)),
    ("double", pa.array([1.5, 2.5]), bounds(1.5, 2.5), (2.0,), (1.0, 3.0)),
    ("float", pa.array([0.1, 0.3], pa.float32()), bounds(0.1, 0.3), (0.25,), (5.0,)),
    ("string", pa.array(["b", "d"]), bounds("b", "d"), ("c",), ("a", "e")),
    ("date", pa.array([datetime.date(2024, 1, 2)] * 2), bounds("2024-01-02", "2024-01-02"),
     (datetime.date(2024, 1, 2),), (datetime.date(2024, 1, 3),)),
    ("timestamp", pa.array([TIME] * 2),
     bounds("2024-05-01T12:00:00.123Z", "2024-05-01T12:00:00.123Z"),
     (TIME,), (TIME + 2 * MILLISECOND, TIME - MILLISECOND)),
    ("timestamp", pa.array([TIME] * 2),
     bounds("2024-05-01T05:00:00.123-07:00", "2024-05-01T05:00:00.123-07:00"),
     (TIME,), (TIME + datetime.timedelta(hours=1),)),
    ("timestamp_ntz", pa.array([TIME.replace(tzinfo=None)] * 2),
     bounds("2024-05-01T12:00:00.123", "2024-05-01T12:00:00.123"),
     (TIME.replace(tzinfo=None),), (TIME.replace(tzinfo=None) + datetime.timedelta(seconds=1),)),
    ("decimal(9,2)", pa.array([Decimal("1.25"), Decimal("7.50")]), bounds(1.25, 7.5),
     (Decimal("1.25"), Decimal("5.00")), (Decimal("1.24"), Decimal("7.51"))),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "stats", "inside", "outside"), CASES)
def test_bounds_rule_out_what_is_outside_of_them(
    lake, tmp_path, kind, values, stats, inside, outside
):
    made = one_column(tmp_path, kind, values, stats)
    assert all(keeps(lake, made, Op.EQ, value) for value in inside)
    assert not any(keeps(lake, made, Op.EQ, value) for value in outside)


def test_nan_is_greater_than_every_bound(lake, tmp_path):
    values = pa.array([1.0, math.nan])
    for number, high in enumerate(("NaN", None, 1.0)):
        made = one_column(tmp_path / str(number), "double", values, bounds(1.0, high))
        assert keeps(lake, made, Op.GT, 5.0)
        assert not keeps(lake, made, Op.LT, 1.0)
    low = one_column(tmp_path / "inf", "double", values, bounds("-Infinity", "NaN"))
    assert keeps(lake, low, Op.LT, -1e300)


def test_null_counts_rule_out_nulls_or_everything_else(lake, tmp_path):
    none = one_column(tmp_path / "a", "long", pa.array([1, 2]), bounds(1, 2))
    assert not keeps(lake, none, Op.IS_NULL)
    every = one_column(tmp_path / "b", "long", pa.nulls(2, pa.int64()), bounds(None, None, 2))
    assert keeps(lake, every, Op.IS_NULL) and not keeps(lake, every, Op.EQ, 1)


@pytest.mark.parametrize(
    "stats",
    [
        None,
        "",
        "{}",
        "nope",
        "[1, 2]",
        "[" * 9999,
        '{"numRecords": "x"}',
        '{"minValues": {"c": "text"}}',
        '{"numRecords": 2, "minValues": 7}',
        '{"numRecords":2,"minValues":{"c":{"d":1}}}',
        '{"numRecords": 2, "numRecords": 3}',
        '{"numRecords":1e99}',
        '{"numRecords":2.5}',
        bounds(True, False),
    ],
)
def test_statistics_that_say_nothing_lose_no_row(lake, tmp_path, stats):
    made = one_column(tmp_path, "long", pa.array([1, 2]), stats)
    made.commit(made.add("g.parquet", pa.table({"c": [50]}), stats=bounds(50, 50, rows=1)))
    found = lake.table(made.name)
    assert found.arrow(where=Leaf(("c",), Op.EQ, (2,)))["c"].to_pylist() == [2]
    assert found.arrow().num_rows == 3
    assert found.arrow(where=Leaf(("c",), Op.EQ, (50,)))["c"].to_pylist() == [50]


def test_decimals_that_a_double_cannot_hold_are_not_believed(lake, tmp_path):
    exact = Decimal("12345678901234567890.12")
    made = one_column(
        tmp_path, "decimal(22,2)", pa.array([exact]), bounds(1.2345678901234567e19, 1.2e19, rows=1)
    )
    assert keeps(lake, made, Op.EQ, exact)


def test_line_breaks_between_tokens_are_white_space():
    texts = pa.array(['{"numRecords":\n 2,\r\n"nullCount": {"c": 1}}', None, '{"numRecords": 5}'])
    found = read_leaves(texts, [StatsLeaf(("c",), pa.int64())])
    assert found.rows.to_pylist() == [2, None, 5]
    assert found.sides["nullCount"][("c",)].to_pylist() == [1, None, None]
    assert row_counts(texts).to_pylist() == [2, None, 5]


def test_a_column_called_like_the_row_count_is_none():
    texts = pa.array(['{"minValues": {"numRecords": 7}, "numRecords": 3}'])
    assert row_counts(texts).to_pylist() == [3]


def test_nested_columns_are_pruned(lake, tmp_path):
    inner = {"type": "struct", "fields": [column("x", "long"), column("y", "string")]}
    made = HandMade(tmp_path / "t").create(metadata([column("s", inner)]))
    for number in (1, 2):
        stats = {
            "numRecords": 1,
            "minValues": {"s": {"x": number}},
            "maxValues": {"s": {"x": number}},
        }
        rows = pa.table({"s": [{"x": number, "y": "a"}]})
        made.commit(made.add(f"f{number}.parquet", rows, stats=json.dumps(stats)))
    predicate = Leaf(("s", "x"), Op.EQ, (2,))
    plan = planned(lake.table(made.name).handle, Request(predicate=predicate)).plan
    assert (plan.files_considered, plan.file_count) == (2, 1)


def test_only_row_counts_are_answered_by_statistics(lake, tmp_path):
    made = one_column(tmp_path, "timestamp", pa.array([TIME] * 2), bounds(
        "2024-05-01T12:00:00.123Z", "2024-05-01T12:00:00.123Z"
    ))  # fmt: skip
    read = planned(lake.table(made.name).handle, Request())
    counted = answered_by_metadata(read, (Aggregate("count_all", None, "n"),))
    assert counted is not None and counted.column(0).to_pylist() == [2]
    assert answered_by_metadata(read, (Aggregate("max", "c", "n"),)) is None


def test_a_count_is_not_answered_where_a_file_has_none(lake, tmp_path):
    made = one_column(tmp_path, "long", pa.array([1, 2]), None)
    read = planned(lake.table(made.name).handle, Request())
    assert answered_by_metadata(read, (Aggregate("count_all", None, "n"),)) is None
