"""Bring rows that are near each other into the same tasks before they are written. Imports pyspark.

Comes in: a DataFrame with the table's columns and the keys of a range distribution. Goes out: the
same rows, shuffled. Adaptive execution sizes the tasks by bytes, where the session has it.
Transforms are Spark expressions wherever one groups rows as the transform does; only `bucket`,
whose hash Spark lacks, is computed in Python, on its one column. A wrong guess here makes more
files, never wrong ones: writers look at every row's partition themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f

from rowlake.engine.present import is_uuid
from rowlake.engine.types import spark_schema
from rowlake.model.transform import apply_transform, parse_transform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from rowlake.model.partition import SortField
    from rowlake.model.schema import Schema

MICROS_PER_HOUR = 3_600_000_000
MICROS_PER_DAY = 24 * MICROS_PER_HOUR
EPOCH = "1970-01-01"
HELPER = "__rowlake_key_{}"
SCALAR_PANDAS = 200  # PySpark's number for a function of one pandas series


def ordered_by(df: DataFrame, keys: tuple[SortField, ...], schema: Schema) -> DataFrame:
    """Return the rows in tasks that hold one range of the keys each."""
    return df.repartitionByRange(*(_ordered(key, schema) for key in keys))


def cluster(
    df: DataFrame,
    groups: Sequence[SortField],
    order: Sequence[SortField],
    schema: Schema,
    *,
    has_time: bool,
) -> DataFrame:
    """Return the rows with those of equal groups in one task, sorted there by the order.

    Equal means equal in the table's types, which the rows may still lack (uuids as text in any
    case, say). Nothing splits a heavy group, as rebalancing would: its rows have to meet.
    """
    fitted = {
        key.source_id: _fitted(df, schema, key.source_id, has_time) for key in (*groups, *order)
    }
    grouped = [key_column(key, schema, fitted[key.source_id]) for key in groups]
    sorted_by = [fitted[key.source_id].asc_nulls_first() for key in order]
    keys = {HELPER.format(number): column for number, column in enumerate(grouped)}
    spread = df.withColumns(keys).repartition(*map(f.col, keys))
    return spread.sortWithinPartitions(*sorted_by).drop(*keys)


def _fitted(df: DataFrame, schema: Schema, field_id: int, has_time: bool) -> Any:
    """Return a column in the table's type; a value that does not fit is null."""
    path, field = schema.paths[field_id], schema.by_id[field_id]
    column = _column(path)
    if is_uuid(field):
        return f.lower(column.cast("string"))
    wanted = spark_schema(pa.schema([field]), has_time=has_time).fields[0].dataType
    is_fit = len(path) > 1 or df.schema[path[0]].dataType == wanted
    return column if is_fit else column.try_cast(wanted)


def key_column(key: SortField, schema: Schema, column: Any = None) -> Any:
    """Return a column that is equal for rows that the transform makes equal.

    `column` is what to take for the source column, where that is not the plain one.
    """
    field = schema.by_id[key.source_id]
    if column is None:
        column = _column(schema.paths[key.source_id])
    transform = parse_transform(key.transform)
    if transform.name == "bucket":
        return _bucket(key.transform, field)(column)
    if transform.name == "truncate":
        return _truncated(column, field.type, transform.width)
    if transform.name in {"year", "month", "day", "hour"}:
        return _dated(column, field.type, transform.name)
    return column


def _column(path: tuple[str, ...]) -> Any:
    return f.col(".".join(f"`{name.replace('`', '``')}`" for name in path))


def _ordered(key: SortField, schema: Schema) -> Any:
    column = key_column(key, schema)
    if key.ascending:
        return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()
    return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()


def _truncated(column: Any, arrow_type: pa.DataType, width: int) -> Any:
    if pa.types.is_integer(arrow_type):
        return column - f.pmod(column, f.lit(width))
    if pa.types.is_decimal(arrow_type):
        # The width counts units of the last place.
        return f.floor(column.cast("double") * 10**arrow_type.scale / width)
    return f.substring(column, 1, width)


def _dated(column: Any, arrow_type: pa.DataType, unit: str) -> Any:
    """Return the year, month, day or hour, in UTC for columns with a zone."""
    if pa.types.is_date(arrow_type):
        return column if unit == "day" else f.trunc(column, unit)
    if arrow_type.tz is None:
        return f.date_trunc(unit, column)
    micros = f.unix_micros(column)
    if unit == "hour":
        return f.floor(micros / MICROS_PER_HOUR)
    days = f.floor(micros / MICROS_PER_DAY)
    if unit == "day":
        return days
    return f.trunc(f.date_add(f.lit(EPOCH).cast("date"), days.cast("int")), unit)


def _bucket(transform: str, field: pa.Field) -> Any:
    # Spark has uuids as text; any bucket of the text keeps equal ones together.
    arrow_type = pa.string() if is_uuid(field) else field.type

    def arrow_bucket(values: pa.Array) -> pa.Array:
        return apply_transform(transform, values.cast(arrow_type))

    def pandas_bucket(values: Any) -> Any:
        return arrow_bucket(pa.array(values)).to_pandas()

    if hasattr(f, "arrow_udf"):
        return f.arrow_udf(arrow_bucket, "int")
    return f.pandas_udf(pandas_bucket, "int", SCALAR_PANDAS)
