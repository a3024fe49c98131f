"""Schemas and rows with every type, for tables that several writers and readers share."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyiceberg import types as ib
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

UTC = dt.timezone.utc

SPARK_TYPES: dict[str, Any] = {
    "id": ib.LongType(),
    "flag": ib.BooleanType(),
    "small": ib.IntegerType(),
    "real": ib.FloatType(),
    "wide": ib.DoubleType(),
    "dec4": ib.DecimalType(4, 1),
    "dec9": ib.DecimalType(9, 2),
    "dec18": ib.DecimalType(18, 3),
    "dec38": ib.DecimalType(38, 10),
    "day": ib.DateType(),
    "local": ib.TimestampType(),
    "instant": ib.TimestamptzType(),
    "text": ib.StringType(),
    "key": ib.UUIDType(),
    "five": ib.FixedType(5),
    "bytes": ib.BinaryType(),
}
"""Types that both Iceberg and Spark have, by the names of sample columns."""


def flat_schema() -> Schema:
    """Return one column per type that Spark has too."""
    fields = [
        NestedField(number, name, kind, required=name == "id")
        for number, (name, kind) in enumerate(SPARK_TYPES.items(), start=1)
    ]
    return Schema(*fields)


def flat_rows() -> pa.Table:
    """Return rows of `flat_schema`: common values, both ends of each range, special ones, nulls."""
    rows = [
        (
            1,
            True,
            7,
            1.5,
            2.5,
            "1.5",
            "12.34",
            "-5.125",
            "3.14",
            _DAY,
            _LOCAL,
            _INSTANT,
            "plain",
            uuid.UUID(int=1).bytes,
            b"abcde",
            b"\x00\xff",
        ),
        (
            2,
            False,
            -(2**31),
            -0.0,
            -0.0,
            "-999.9",
            "-9999999.99",
            "-999999999999999.999",
            "-" + "9" * 28 + "." + "9" * 10,
            dt.date(1, 1, 1),
            dt.datetime(1, 1, 1),
            dt.datetime(1900, 1, 1, tzinfo=UTC),
            "",
            uuid.UUID(int=2**128 - 1).bytes,
            b"\x00" * 5,
            b"",
        ),
        (
            3,
            None,
            2**31 - 1,
            float("inf"),
            float("-inf"),
            "999.9",
            "9999999.99",
            "999999999999999.999",
            "9" * 28 + "." + "9" * 10,
            dt.date(9999, 12, 31),
            dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
            dt.datetime(2200, 1, 1, tzinfo=UTC),
            "ünï-çødé 日本語 🎉🎉🎉🎉🎉🎉🎉🎉🎉",
            uuid.UUID(int=2**127).bytes,
            b"\xff" * 5,
            b"\xff" * 40,
        ),
        (4, *[None] * 15),
        (
            2**63 - 1,
            True,
            0,
            float("nan"),
            float("nan"),
            "0.0",
            "0.00",
            "0.000",
            "0",
            _DAY,
            _LOCAL,
            _INSTANT,
            "x" * 100,
            uuid.UUID(int=5).bytes,
            b"zzzzz",
            b"q" * 100,
        ),
    ]
    columns = [
        _typed(list(values), arrow)
        for values, arrow in zip(zip(*rows, strict=True), flat_arrow().types, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=flat_arrow())


_DAY = dt.date(2024, 2, 29)
_LOCAL = dt.datetime(2024, 2, 29, 12, 30, 15, 123456)
_INSTANT = dt.datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=UTC)


def flat_arrow() -> pa.Schema:
    """Return `flat_schema` in Arrow's types."""
    return pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("flag", pa.bool_()),
            ("small", pa.int32()),
            ("real", pa.float32()),
            ("wide", pa.float64()),
            ("dec4", pa.decimal128(4, 1)),
            ("dec9", pa.decimal128(9, 2)),
            ("dec18", pa.decimal128(18, 3)),
            ("dec38", pa.decimal128(38, 10)),
            ("day", pa.date32()),
            ("local", pa.timestamp("us")),
            ("instant", pa.timestamp("us", "UTC")),
            ("text", pa.string()),
            ("key", pa.binary(16)),
            ("five", pa.binary(5)),
            ("bytes", pa.binary()),
        ]
    )


def _typed(values: list[Any], arrow: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(arrow):
        values = [None if value is None else Decimal(value) for value in values]
    return pa.array(values, arrow)


def nested_schema() -> Schema:
    """Return structs, lists and maps, in one another, some parts required."""
    point = ib.StructType(
        NestedField(20, "x", ib.DoubleType(), required=True),
        NestedField(21, "label", ib.StringType()),
    )
    return Schema(
        NestedField(1, "id", ib.LongType(), required=True),
        NestedField(
            2,
            "s",
            ib.StructType(
                NestedField(10, "a", ib.IntegerType()),
                NestedField(11, "deep", ib.StructType(NestedField(12, "b", ib.StringType()))),
            ),
        ),
        NestedField(3, "numbers", ib.ListType(22, ib.LongType(), element_required=False)),
        NestedField(4, "points", ib.ListType(23, point, element_required=True)),
        NestedField(5, "counts", ib.MapType(24, ib.StringType(), 25, ib.IntegerType(), False)),
        NestedField(
            6,
            "lists",
            ib.MapType(26, ib.LongType(), 27, ib.ListType(28, ib.DateType(), False), False),
        ),
    )


def nested_rows() -> pa.Table:
    """Return rows of `nested_schema`: full, empty and null at every level."""
    rows = [
        {
            "id": 1,
            "s": {"a": 1, "deep": {"b": "x"}},
            "numbers": [1, None, 3],
            "points": [{"x": 1.5, "label": "p"}, {"x": float("nan"), "label": None}],
            "counts": [("k", 1), ("l", None)],
            "lists": [(1, [_DAY, None]), (2, []), (3, None)],
        },
        {"id": 2, "s": {"a": None, "deep": None}, "numbers": [], "points": [], "counts": []},
        {"id": 3, "s": {"a": 3, "deep": {"b": None}}, "lists": []},
        {"id": 4},
    ]
    point = pa.struct([pa.field("x", pa.float64(), nullable=False), ("label", pa.string())])
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("s", pa.struct([("a", pa.int32()), ("deep", pa.struct([("b", pa.string())]))])),
            ("numbers", pa.list_(pa.int64())),
            ("points", pa.list_(pa.field("element", point, nullable=False))),
            ("counts", pa.map_(pa.string(), pa.int32())),
            ("lists", pa.map_(pa.int64(), pa.list_(pa.date32()))),
        ]
    )
    return pa.Table.from_pylist(rows, schema)
