"""Partial aggregates: exact, with Spark's groups and order of NaN."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from rowlake.errors import InternalError
from rowlake.model.predicate import Leaf, Op
from rowlake.model.task import ScanTask
from rowlake.scan import aggregate as aggregate_module
from rowlake.scan.aggregate import (
    Aggregate,
    AggregateTask,
    aggregate_kernel,
    aggregate_schema,
    is_pushable,
)
from tests.scanning import context, field, file_task, schema, table_of, write_parquet

NAN = math.nan
TABLE = schema(
    field("g", pa.int32(), 1),
    field("f", pa.float64(), 2),
    field("i", pa.int32(), 3),
    field("l", pa.int64(), 4),
    field("d", pa.decimal128(7, 2), 5),
    field("w", pa.decimal128(28, 2), 6),
    field("m", pa.decimal128(18, 2), 10),
    field("s", pa.string(), 7),
    field("b", pa.bool_(), 8),
    field("t", pa.timestamp("us"), 9),
)


def rows() -> list[dict[str, object]]:
    return [
        {
            "g": index % 3 if index % 5 else None,
            "f": [NAN, -0.0, 0.0, 1.5, None][index % 5],
            "i": 2**31 - 1 - index,
            "l": 2**63 - 1 - index,
            "d": Decimal(index - 40) / 100,
            "w": Decimal(10**24 + index) / 100,
            "m": Decimal(-(10**17) - index) / 100,
            "s": None if index % 7 == 0 else f"{index:03d}",
            "b": index % 2 == 0,
            "t": dt.datetime(2020, 1, 1) + dt.timedelta(hours=index),
        }
        for index in range(90)
    ]


@pytest.fixture
def path(tmp_path) -> str:
    return write_parquet(tmp_path / "f.parquet", table_of(TABLE, rows()), row_group_size=20)


def aggregated(path: str, group_by: list[str], *calls: tuple[str, str | None], **facts) -> pa.Table:
    made = tuple(Aggregate(function, column, f"{function}_{column}") for function, column in calls)
    scan = ScanTask(context(TABLE, batch_rows=16, **facts), (file_task(path),))
    task = AggregateTask(scan, tuple(group_by), made)
    batches = list(aggregate_kernel(task))
    return pa.Table.from_batches(batches, schema=aggregate_schema(task))


CALLS = [
    ("count_all", None),
    ("count", "s"),
    *[("sum", name) for name in ("i", "l", "d", "w", "m", "f")],
    *[(one, name) for one in ("min", "max") for name in ("i", "l", "d", "w", "m", "s", "b", "t")],
]


def expected(held: list[dict[str, object]], function: str, column: str | None) -> object:
    if column is None:
        return len(held)
    values = [row[column] for row in held if row[column] is not None]
    if function == "count":
        return len(values)
    if not values:
        return None
    if function == "sum":
        return sum(values)
    return min(values) if function == "min" else max(values)


def same(found: object, wanted: object) -> bool:
    if isinstance(wanted, float) and math.isnan(wanted):
        return isinstance(found, float) and math.isnan(found)
    return found == wanted


@pytest.mark.parametrize("chunk", [10, 1 << 19])
@pytest.mark.parametrize("group_by", [[], ["g"], ["g", "b"]])
def test_against_plain_python(path, monkeypatch, chunk, group_by) -> None:
    monkeypatch.setattr(aggregate_module, "_CHUNK_ROWS", chunk)
    monkeypatch.setattr(aggregate_module, "_POOR", 1.0)
    found = aggregated(path, group_by, *CALLS).to_pylist()
    groups: dict[tuple[object, ...], list[dict[str, object]]] = {}
    for row in rows():
        groups.setdefault(tuple(row[name] for name in group_by), []).append(row)
    assert len(found) == len(groups)
    for row in found:
        held = groups[tuple(row[name] for name in group_by)]
        for function, column in CALLS:
            wanted = expected(held, function, column)
            assert same(row[f"{function}_{column}"], wanted), (function, column)


def test_nan_is_largest_and_one_group_and_zeros_are_one(path) -> None:
    found = aggregated(path, ["f"], ("count_all", None)).to_pylist()
    assert {repr(row["f"]): row["count_all_None"] for row in found} == {
        "nan": 18,
        "0.0": 36,
        "1.5": 18,
        "None": 18,
    }
    (row,) = aggregated(path, [], ("min", "f"), ("max", "f")).to_pylist()
    assert (row["min_f"], math.isnan(row["max_f"])) == (0.0, True)
    only = Leaf(("f",), Op.IS_NAN, (), 2)
    (row,) = aggregated(path, [], ("min", "f"), ("max", "f"), predicate=only).to_pylist()
    assert math.isnan(row["min_f"]) and math.isnan(row["max_f"])


def test_result_types_are_sparks(path) -> None:
    found = aggregated(path, ["g"], *CALLS).schema
    assert found.field("sum_i").type == found.field("sum_l").type == pa.decimal128(38, 0)
    assert found.field("sum_d").type == pa.decimal128(17, 2)
    assert found.field("sum_w").type == pa.decimal128(38, 2)
    assert found.field("sum_f").type == pa.float64()
    assert found.field("max_d").type == pa.decimal128(7, 2)
    assert found.field("count_s").type == pa.int64()


def test_nothing_gives_one_row_without_groups_and_none_with(path) -> None:
    none = Leaf(("i",), Op.EQ, (-1,), 3)
    calls = [("count_all", None), ("sum", "d"), ("max", "s")]
    found = aggregated(path, [], *calls, predicate=none).to_pylist()
    assert found == [{"count_all_None": 0, "sum_d": None, "max_s": None}]
    assert aggregated(path, ["g"], *calls, predicate=none).num_rows == 0


def test_very_many_groups_are_emitted_in_parts(path, monkeypatch) -> None:
    monkeypatch.setattr(aggregate_module, "_CHUNK_ROWS", 10)
    found = aggregated(path, ["l"], ("count_all", None), ("sum", "i"))
    assert found["count_all_None"].to_pylist() == [1] * 90
    assert sorted(found["l"].to_pylist()) == sorted(row["l"] for row in rows())


@pytest.mark.parametrize(
    ("function", "kind", "pushable"),
    [
        ("sum", pa.int32(), True),
        ("sum", pa.decimal128(28, 2), True),
        ("sum", pa.decimal128(29, 2), False),
        ("sum", pa.string(), False),
        ("min", pa.string(), True),
        ("max", pa.list_(pa.int32()), False),
        ("max", pa.struct([]), False),
        ("count", pa.list_(pa.int32()), True),
        ("median", pa.int32(), False),
    ],
)
def test_what_can_be_pushed(function, kind, pushable) -> None:
    assert is_pushable(function, pa.field("a", kind)) is pushable


def test_what_cannot_be_pushed_is_not_tried(path) -> None:
    assert is_pushable("count_all", None)
    with pytest.raises(InternalError, match="sum"):
        aggregated(path, [], ("sum", "s"))
