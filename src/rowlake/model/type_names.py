"""Primitive types by the spec's names (`long`, `decimal(9, 2)`), and the Arrow types for them.

The one place that pairs the two: schemas, single values, manifests and Avro files all use it.
"""

from __future__ import annotations

import pyarrow as pa

from rowlake.model.schema import type_name

ARROW_TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
    "unknown": pa.null(),
}
_NAMES = {arrow: name for name, arrow in ARROW_TYPES.items()} | {
    pa.large_string(): "string",
    pa.large_binary(): "binary",
}


def primitive_name(field: pa.Field) -> str | None:
    """Return the spec's name of a primitive field's type; None for other types."""
    named = type_name(field)
    if named is not None:
        return named
    found = field.type
    if isinstance(found, pa.UuidType):
        return "uuid"
    if pa.types.is_decimal(found):
        return f"decimal({found.precision}, {found.scale})"
    if pa.types.is_fixed_size_binary(found):
        return f"fixed[{found.byte_width}]"
    return _NAMES.get(found)


_SQL_NAMES = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP_NTZ",
    "timestamptz": "TIMESTAMP",
    "timestamp_ns": "TIMESTAMP_NTZ (ns)",
    "timestamptz_ns": "TIMESTAMP (ns)",
    "string": "STRING",
    "binary": "BINARY",
    "uuid": "UUID",
    "unknown": "VOID",
}
_UNITS = {"s": "s", "ms": "ms", "us": "", "ns": "ns"}


def sql_name(field: pa.Field) -> str:
    """Return a field's type in the words of Spark SQL; Arrow's name where it has none."""
    found = field.type
    if pa.types.is_timestamp(found) and type_name(field) is None:
        unit = f" ({_UNITS[found.unit]})" if _UNITS[found.unit] else ""
        return f"{'TIMESTAMP_NTZ' if found.tz is None else 'TIMESTAMP'}{unit}"
    name = primitive_name(field)
    if name is None:
        return _sql_name_of_arrow(found)
    return _SQL_NAMES.get(name, name.upper())


def _sql_name_of_arrow(found: pa.DataType) -> str:
    types = pa.types
    if types.is_integer(found):
        name = {8: "TINYINT", 16: "SMALLINT", 32: "INT"}.get(found.bit_width, "BIGINT")
        return f"unsigned {name}" if types.is_unsigned_integer(found) else name
    if types.is_struct(found):
        return "STRUCT"
    if types.is_map(found):
        return "MAP"
    if types.is_nested(found):
        return "ARRAY"
    if types.is_string_view(found):
        return "STRING"
    return "DATE" if types.is_date(found) else str(found)
