"""Every type, written by us: Java reads the same rows and finds the metrics of its own files."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import types as ib
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from rowlake.model.partition import PartitionBy
from tests.parts.java_tables import generic_rows, load
from tests.parts.rows import rows_of
from tests.parts.samples import flat_rows, flat_schema, nested_rows, nested_schema

FORMATS = ["parquet", "orc", "avro"]
# Arrow reads the timestamps of ORC in nanoseconds, so those of far centuries cannot be read.
IN_RANGE = [0, 3, 4]
SAMPLES = {"flat": (flat_schema, flat_rows), "nested": (nested_schema, nested_rows)}


def given_rows(kind: str, file_format: str) -> pa.Table:
    """Return the rows that a test writes."""
    rows = SAMPLES[kind][1]()
    return rows.take(IN_RANGE) if (kind, file_format) == ("flat", "orc") else rows


def twins(lake, java, name, version, kind, file_format) -> None:
    """Make one table by us and one like it, `_java`, with the same rows written by Java."""
    schema = SAMPLES[kind][0]
    properties = {"format-version": str(version), "write.format.default": file_format}
    ours = lake.create_table(name, schema(), properties=properties)
    lake.create_table(f"{name}_java", schema(), properties=properties)
    ours.append(given_rows(kind, file_format))
    java(f"SELECT * FROM java.{name}").writeTo(f"java.{name}_java").append()


METRICS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


# Java takes ORC's own statistics: none of uuid, fixed and binary, whole milliseconds of timestamps.
ORC_UNLIKE = {11, 12, 14, 15, 16}


def metrics(java, name: str, unlike: set[int]) -> list[dict[str, Any]]:
    """Return the metrics of each data file as Java reads them, but for sizes and some bounds.

    The encoded ones: Java cannot show the bounds of uuids as people read them.
    """
    found = java(f"SELECT record_count, {', '.join(METRICS)} FROM java.{name}.data_files").toArrow()
    return [
        {key: kept(key, value, unlike) for key, value in row.items()} for row in found.to_pylist()
    ]


def kept(metric: str, value: Any, unlike: set[int]) -> Any:
    if not isinstance(value, list):
        return value
    skipped = unlike if metric.endswith("bounds") else set()
    return sorted(pair for pair in value if pair[0] not in skipped)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("kind", SAMPLES)
def test_java_reads_our_rows_and_we_read_its(lake, java, name, version, kind, file_format):
    twins(lake, java, name, version, kind, file_format)
    written = rows_of(lake.table(name).arrow())
    given = given_rows(kind, file_format)
    same = [column for column in given.column_names if column != "key"]  # bytes there, uuids here
    assert rows_of(lake.table(name).arrow(same)) == rows_of(given.select(same))
    assert rows_of(java(f"SELECT * FROM java.{name}")) == rows_of(lake.table(name).df())
    assert rows_of(java(f"SELECT * FROM java.{name}_java")) == rows_of(
        lake.table(f"{name}_java").df()
    )
    assert rows_of(lake.table(f"{name}_java").arrow()) == written
    if file_format == "avro":  # Java keeps no metrics of Avro files; ours are a gain
        return
    unlike = ORC_UNLIKE if (kind, file_format) == ("flat", "orc") else set()
    assert metrics(java, name, unlike) == metrics(java, f"{name}_java", unlike)


RARE = Schema(
    NestedField(1, "id", ib.LongType(), required=True),
    NestedField(2, "t", ib.TimeType()),
    NestedField(3, "l", ib.ListType(4, ib.TimeType(), element_required=False)),
)
RARE_V3 = Schema(
    *RARE.fields,
    NestedField(5, "local", ib.TimestampNanoType()),
    NestedField(6, "instant", ib.TimestamptzNanoType()),
    NestedField(7, "none", ib.UnknownType()),
)


def rare_rows(version: int) -> pa.Table:
    columns = {
        "id": pa.array([1, 2, 3], pa.int64()),
        "t": pa.array([dt.time(1, 2, 3, 4), dt.time(23, 59, 59, 999999), None], pa.time64("us")),
        "l": pa.array([[dt.time(0, 0)], [], None], pa.list_(pa.time64("us"))),
    }
    if version == 3:
        stamps = pa.array([1_700_000_000_123_456_789, -1, None], pa.int64())
        columns["local"] = stamps.cast(pa.timestamp("ns"))
        columns["instant"] = stamps.cast(pa.timestamp("ns", "UTC"))
    return pa.table(columns)


@pytest.mark.parametrize("file_format", FORMATS)
def test_java_reads_types_that_spark_lacks(lake, spark, name, version, file_format):
    properties = {"format-version": str(version), "write.format.default": file_format}
    table = lake.create_table(name, RARE_V3 if version == 3 else RARE, properties=properties)
    table.append(rare_rows(version))
    found = generic_rows(spark, load(spark, table.location))
    expected = [
        ("1", "01:02:03.000004", "[00:00]"),
        ("2", "23:59:59.999999", "[]"),
        ("3", "null", "null"),
    ]
    if version == 3:
        local = ["2023-11-14T22:13:20.123456789", "1969-12-31T23:59:59.999999999", "null"]
        zoned = [text if text == "null" else f"{text}Z" for text in local]
        tails = zip(local, zoned, ["null"] * 3, strict=True)
        expected = [row + tail for row, tail in zip(expected, tails, strict=True)]
    assert found == expected
    ours = table.arrow()
    assert ours["t"].to_pylist() == rare_rows(version)["t"].to_pylist()
    if version == 3:
        assert ours["local"].cast(pa.int64()).to_pylist() == [1_700_000_000_123_456_789, -1, None]


ODD_NAMES = [
    "a.b",
    "Ünï 日本",
    "with space",
    "quote`d",
    "a-b",
    "1st",
    "select",
    "a,b;c",
    "x=y/z",
    "_e",
]


@pytest.mark.parametrize("file_format", FORMATS)
def test_odd_column_names(lake, java, name, version, file_format):
    properties = {"format-version": str(version), "write.format.default": file_format}
    data = pa.table({odd: pa.array([number, None]) for number, odd in enumerate(ODD_NAMES)})
    table = lake.create_table(
        name, data.schema, partition_by=[PartitionBy(("x=y/z",), "identity")], properties=properties
    )
    table.append(data)
    expected = rows_of(data)
    assert rows_of(java(f"SELECT * FROM java.{name}")) == expected
    assert java(f"SELECT * FROM java.{name}").columns == ODD_NAMES
    assert rows_of(table.arrow()) == rows_of(table.df()) == expected
    java(f"INSERT INTO java.{name} SELECT * FROM java.{name}")
    assert rows_of(table.arrow()) == rows_of(table.df()) == sorted(expected * 2, key=repr)
