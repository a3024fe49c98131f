"""Counts and bounds from manifests: what a scan finds, or no answer."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.types import LongType

from rowlake.query.partial_aggregates import answered_by_metadata
from rowlake.scan.aggregate import Aggregate
from rowlake.verbs.read import Request, planned
from tests.lakes import make_lake
from tests.manifests import change_entries

COLUMNS: dict[str, tuple[pa.DataType, Any]] = {
    "i": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "l": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "f": (pa.float32(), st.floats(width=32)),
    "d": (pa.float64(), st.floats()),
    "m": (pa.decimal128(9, 2), st.decimals(-9999, 9999, places=2, allow_nan=False)),
    "day": (pa.date32(), st.dates()),
    "t": (pa.time64("us"), st.times()),
    "at": (pa.timestamp("us"), st.datetimes()),
    "b": (pa.bool_(), st.booleans()),
    "s": (pa.string(), st.text(max_size=30)),
    "x": (pa.binary(), st.binary(max_size=30)),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])


@pytest.fixture
def lake(tmp_path):
    with make_lake(tmp_path) as made:
        made.create_namespace("n")
        yield made


def answer(table, function: str, column: str | None):
    """Return (whether the manifests answered, what they said)."""
    columns = [column] if column else [table.schema.fields[0].name]
    read = planned(table.handle, Request(columns))
    found = answered_by_metadata(read, (Aggregate(function, column, "a"),))
    return (False, None) if found is None else (True, found["a"][0].as_py())


def scanned(table, function: str, column: str):
    values = table.arrow([column])[column]
    if function == "count":
        return pc.count(values).as_py()
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        return None  # NaN is the greatest for Spark; no answer may come at all
    return (pc.min if function == "min" else pc.max)(values).as_py()


FILES = st.lists(
    st.lists(
        st.fixed_dictionaries({name: st.none() | kind for name, (_, kind) in COLUMNS.items()}),
        min_size=1,
        max_size=4,
    ),
    max_size=3,
)


@given(files=FILES)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_an_answer_is_what_a_scan_finds(lake, files):
    table = lake.create_table("n.t", SCHEMA, replace=True)
    for rows in files:
        table.append(pa.Table.from_pylist(rows, SCHEMA))
    for name, (kind, _) in COLUMNS.items():
        assert answer(table, "count", name) == (True, scanned(table, "count", name))
        for function in ("min", "max"):
            told, found = answer(table, function, name)
            if told:
                assert found == scanned(table, function, name)
                assert not (isinstance(found, float) and found == 0)
            else:
                assert pa.types.is_floating(kind) or name in ("s", "x")


def one(lake, name: str, values: list[Any], **properties: str):
    kind = COLUMNS[name][0]
    table = lake.create_table("n.one", pa.schema([(name, kind)]), properties=properties)
    for value in values:
        table.append(pa.table({name: pa.array([value], kind)}))
    return table


@pytest.mark.parametrize(
    ("name", "values", "least", "greatest"),
    [
        ("i", [3, None, -5], -5, 3),
        ("l", [None, None], None, None),
        ("l", [], None, None),
        ("d", [1.5, -math.inf], -math.inf, 1.5),
        ("m", [Decimal("-1.50"), Decimal("2.25")], Decimal("-1.50"), Decimal("2.25")),
        ("day", [dt.date(1, 1, 1), dt.date(2024, 1, 1)], dt.date(1, 1, 1), dt.date(2024, 1, 1)),
        ("b", [True, False], False, True),
    ],
)
def test_bounds_of_many_files(lake, name, values, least, greatest):
    table = one(lake, name, values)
    assert answer(table, "min", name) == (True, least)
    assert answer(table, "max", name) == (True, greatest)
    assert answer(table, "count", name) == (True, sum(each is not None for each in values))
    assert answer(table, "count_all", None) == (True, len(values))


@pytest.mark.parametrize("values", [[0.0, 1.0], [-0.0, 1.0], [math.nan, 1.0], [math.nan]])
def test_zeros_and_nan_are_left_to_a_scan(lake, values):
    assert answer(one(lake, "d", values), "min", "d") == (False, None)


@pytest.mark.parametrize("mode", ["counts", "none"])
def test_metrics_that_are_not_kept_tell_nothing(lake, mode):
    table = one(lake, "i", [1, None], **{"write.metadata.metrics.default": mode})
    assert answer(table, "max", "i") == (False, None)
    assert answer(table, "count", "i") == ((True, 1) if mode == "counts" else (False, None))
    assert answer(table, "count_all", None) == (True, 2)


def test_deleted_rows_are_left_to_a_scan(lake):
    table = lake.create_table("n.one", pa.schema([("i", pa.int32())]))
    table.append(pa.table({"i": pa.array(range(10), pa.int32())}))
    table.delete("i = 9", mode="merge-on-read")
    for function in ("count", "min", "max"):
        assert answer(table, function, "i") == (False, None)


def test_columns_that_files_do_not_have_yet_are_left_to_a_scan(lake):
    table = one(lake, "i", [1])
    with table.evolve().update_schema() as update:
        update.add_column("later", LongType())
    assert answer(table, "count", "later") == (False, None)
    assert answer(table, "max", "later") == (False, None)


def test_widened_columns_keep_their_bounds(lake):
    table = one(lake, "i", [7])
    with table.evolve().update_schema() as update:
        update.update_column("i", LongType())
    table.append(pa.table({"i": pa.array([2**40])}))
    assert answer(table, "max", "i") == (True, 2**40)
    assert answer(table, "min", "i") == (True, 7)


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_files_of_other_formats_are_scanned(lake, file_format):
    table = one(lake, "i", [1, 2], **{"write.format.default": file_format})
    assert answer(table, "max", "i") == (False, None)


@pytest.mark.parametrize("count", [-1, 1 << 62])
def test_impossible_counts_are_not_believed(lake, count) -> None:
    table = lake.create_table("n.t", pa.schema([("i", pa.int32())]))
    table.append(pa.table({"i": pa.array([1, 2, None], pa.int32())}))
    assert answer(table, "count_all", None) == (True, 3)

    def change(file) -> None:
        file["record_count"] = count
        file["value_counts"] = [{"key": 1, "value": count}]

    change_entries(table, change)
    assert answer(table, "count_all", None) == (False, None)
    assert answer(table, "count", "i") == (False, None)


@pytest.mark.parametrize("nulls", [-5, 4])
def test_impossible_null_counts_are_not_believed(lake, nulls) -> None:
    table = lake.create_table("n.t", pa.schema([("i", pa.int32())]))
    table.append(pa.table({"i": pa.array([1, 2, None], pa.int32())}))
    change_entries(table, lambda file: file.update(null_value_counts=[{"key": 1, "value": nulls}]))
    for function in ("count", "min", "max"):
        assert answer(table, function, "i") == (False, None)
