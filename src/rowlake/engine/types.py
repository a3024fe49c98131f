"""Arrow schemas -> Spark schemas. Imports pyspark: load it only where a session exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as spark_types
from pyspark.version import __version__ as pyspark_version

from rowlake.engine.present import VARIANT, presented_schema
from rowlake.errors import UnsupportedFeatureError
from rowlake.model.schema import DOC

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMENT = "comment"
TIME_SETTING = "spark.sql.timeType.enabled"

_SIMPLE = {
    pa.bool_(): spark_types.BooleanType(),
    pa.int8(): spark_types.ByteType(),
    pa.int16(): spark_types.ShortType(),
    pa.int32(): spark_types.IntegerType(),
    pa.int64(): spark_types.LongType(),
    pa.float32(): spark_types.FloatType(),
    pa.float64(): spark_types.DoubleType(),
    pa.string(): spark_types.StringType(),
    pa.binary(): spark_types.BinaryType(),
    pa.date32(): spark_types.DateType(),
    pa.timestamp("us"): spark_types.TimestampNTZType(),
    pa.timestamp("us", "UTC"): spark_types.TimestampType(),
    pa.duration("us"): spark_types.DayTimeIntervalType(),
    pa.null(): spark_types.NullType(),
    VARIANT: spark_types.VariantType(),
}


def knows_time_type() -> bool:
    """Return whether a session that rowlake makes knows the TIME type: it turns it on."""
    version = tuple(int(part) for part in pyspark_version.split(".")[:2])
    return version >= (4, 1) and hasattr(spark_types, "TimeType")


def has_time_type(spark: Any) -> bool:
    """Return whether both this PySpark and the session know the TIME type.

    Spark 4.1 has it behind a setting that is off unless someone turns it on.
    """
    version = tuple(int(part) for part in spark.version.split(".")[:2])
    if version < (4, 1) or not hasattr(spark_types, "TimeType"):
        return False
    try:
        # With a default of ours, Spark would answer that instead of its own.
        return str(spark.conf.get(TIME_SETTING)).lower() == "true"
    except PySparkException:
        return True  # a Spark that no longer has the setting has the type


def spark_schema(schema: pa.Schema, *, has_time: bool = True) -> spark_types.StructType:
    """Return the schema of a DataFrame with these columns: types, nullability and comments.

    Raises UnsupportedFeatureError for a type that Spark does not have.
    """
    return spark_types.StructType(
        [_spark_field(field) for field in presented_schema(schema, has_time=has_time)]
    )


def with_types(
    schema: spark_types.StructType, types: Mapping[int, pa.Field], *, has_time: bool
) -> spark_types.StructType:
    """Return the schema of a DataFrame with other types of some columns, given by place."""
    fields = list(schema.fields)
    for place, wanted in types.items():
        (made,) = spark_schema(pa.schema([wanted]), has_time=has_time).fields
        fields[place] = spark_types.StructField(fields[place].name, made.dataType, True)
    return spark_types.StructType(fields)


def _spark_field(field: pa.Field) -> spark_types.StructField:
    doc = (field.metadata or {}).get(DOC)
    metadata = {COMMENT: doc.decode()} if doc else None
    return spark_types.StructField(field.name, _spark_type(field), field.nullable, metadata)


def _spark_type(field: pa.Field) -> Any:
    arrow_type = field.type
    simple = _SIMPLE.get(arrow_type)
    if simple is not None:
        return simple
    if pa.types.is_decimal(arrow_type):
        return spark_types.DecimalType(arrow_type.precision, arrow_type.scale)
    if arrow_type == pa.time64("ns"):
        return spark_types.TimeType(6)
    if pa.types.is_nested(arrow_type):
        return _spark_nested(arrow_type)
    raise UnsupportedFeatureError(
        f"Cannot show column {field.name} in Spark: it has no type for {arrow_type}. "
        f"Leave the column out of the projection."
    )


def _spark_nested(arrow_type: pa.DataType) -> Any:
    if pa.types.is_struct(arrow_type):
        return spark_types.StructType([_spark_field(child) for child in arrow_type])
    if pa.types.is_map(arrow_type):
        key, item = arrow_type.key_field, arrow_type.item_field
        return spark_types.MapType(_spark_type(key), _spark_type(item), item.nullable)
    element = arrow_type.value_field
    return spark_types.ArrayType(_spark_type(element), element.nullable)
