from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import types as t

from rowlake.engine.types import TIME_SETTING, has_time_type, spark_schema
from rowlake.errors import UnsupportedFeatureError


def one(arrow_type: pa.DataType, **options: object) -> t.DataType:
    return spark_schema(pa.schema([pa.field("c", arrow_type)]), **options)["c"].dataType


@pytest.mark.parametrize(
    ("arrow_type", "spark_type"),
    [
        (pa.bool_(), t.BooleanType()),
        (pa.int32(), t.IntegerType()),
        (pa.int64(), t.LongType()),
        (pa.float32(), t.FloatType()),
        (pa.float64(), t.DoubleType()),
        (pa.decimal128(38, 10), t.DecimalType(38, 10)),
        (pa.date32(), t.DateType()),
        (pa.time64("us"), t.TimeType(6)),
        (pa.timestamp("us"), t.TimestampNTZType()),
        (pa.timestamp("us", "UTC"), t.TimestampType()),
        (pa.timestamp("ns"), t.TimestampNTZType()),
        (pa.timestamp("ns", "UTC"), t.TimestampType()),
        (pa.string(), t.StringType()),
        (pa.large_string(), t.StringType()),
        (pa.uuid(), t.StringType()),
        (pa.binary(), t.BinaryType()),
        (pa.binary(7), t.BinaryType()),
        (pa.null(), t.NullType()),
        (pa.list_(pa.field("element", pa.int32(), False)), t.ArrayType(t.IntegerType(), False)),
        (pa.map_(pa.string(), pa.binary(4)), t.MapType(t.StringType(), t.BinaryType())),
    ],
)
def test_every_type_has_its_spark_type(arrow_type, spark_type):
    assert one(arrow_type) == spark_type


def test_time_is_text_for_sessions_without_it():
    assert one(pa.time64("us"), has_time=False) == t.StringType()


def test_a_variant_in_two_parts_is_a_variant_and_one_blob_is_binary():
    as_variant = {"rowlake:type": "variant"}
    parts = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    schema = spark_schema(
        pa.schema(
            [
                pa.field("v", parts, metadata=as_variant),
                pa.field("b", pa.binary(), metadata=as_variant),
            ]
        )
    )
    assert schema["v"].dataType == t.VariantType()
    assert schema["b"].dataType == t.BinaryType()


def test_nullability_and_comments_reach_nested_fields():
    inner = pa.field("x", pa.int32(), nullable=False, metadata={"rowlake:doc": "inner"})
    outer = pa.field("s", pa.struct([inner]), nullable=False, metadata={"rowlake:doc": "outer"})
    column = spark_schema(pa.schema([outer]))["s"]
    assert not column.nullable
    assert column.metadata == {"comment": "outer"}
    assert column.dataType["x"].metadata == {"comment": "inner"}
    assert not column.dataType["x"].nullable


def test_a_type_that_spark_lacks_is_named_with_its_column():
    with pytest.raises(UnsupportedFeatureError, match=r"column c .* month_day_nano"):
        one(pa.month_day_nano_interval())


class Session:
    """As much of a session as tells what it knows."""

    def __init__(self, version, **settings):
        self.version, self.conf, self._settings = version, self, settings

    def get(self, key):
        if key not in self._settings:
            raise PySparkException("[SQL_CONF_NOT_FOUND]")
        return self._settings[key]


@pytest.mark.parametrize(
    ("version", "settings", "expected"),
    [
        ("4.0.1", {}, False),
        ("4.1.4", {TIME_SETTING: "false"}, False),
        ("4.1.4", {TIME_SETTING: "true"}, True),
        ("5.0.0", {}, True),
    ],
)
def test_time_needs_spark_4_1_and_its_setting(version, settings, expected):
    assert has_time_type(Session(version, **settings)) is expected
