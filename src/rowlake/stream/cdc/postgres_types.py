"""Types of PostgreSQL -> Arrow fields of a table's columns, by oid or by name.

`numeric` without a precision has no bound, so it stays text. Types that tables do not have (json,
ranges, intervals, enums, …) are texts, as PostgreSQL writes them.
"""

from __future__ import annotations

import re

import pyarrow as pa

from rowlake.model.schema import TYPE_NAME

_MOST_DIGITS = 38
_UUID = {TYPE_NAME: b"uuid"}
_MICROS = pa.timestamp("us")

_BY_NAME: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "bool": pa.bool_(),
    "smallint": pa.int32(),
    "int2": pa.int32(),
    "integer": pa.int32(),
    "int4": pa.int32(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "int8": pa.int64(),
    "oid": pa.int64(),
    "real": pa.float32(),
    "float4": pa.float32(),
    "double precision": pa.float64(),
    "float8": pa.float64(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "time without time zone": pa.time64("us"),
    "timestamp": _MICROS,
    "timestamp without time zone": _MICROS,
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "timestamp with time zone": pa.timestamp("us", tz="UTC"),
    "uuid": pa.binary(16),
}
_NAMES_BY_OID = {
    16: "bool",
    17: "bytea",
    20: "int8",
    21: "int2",
    23: "int4",
    26: "oid",
    700: "float4",
    701: "float8",
    1082: "date",
    1083: "time",
    1114: "timestamp",
    1184: "timestamptz",
    1700: "numeric",
    2950: "uuid",
}
_ARRAYS = {
    1000: 16,
    1001: 17,
    1016: 20,
    1005: 21,
    1007: 23,
    1009: 25,
    1014: 1042,
    1015: 1043,
    1021: 700,
    1022: 701,
    1182: 1082,
    1183: 1083,
    1115: 1114,
    1185: 1184,
    1231: 1700,
    2951: 2950,
}
_NUMERIC = re.compile(r"^(?:numeric|decimal)\s*(?:\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\))?$")
_MODIFIER = re.compile(r"\(\s*\d+\s*\)")


def field_of_oid(name: str, oid: int, modifier: int = -1) -> pa.Field:
    """Return the column of a type by its oid; the modifier of numeric has precision and scale."""
    if oid in _ARRAYS:
        element = field_of_oid("element", _ARRAYS[oid], modifier)
        return pa.field(name, pa.list_(element))
    known = _NAMES_BY_OID.get(oid, "text")
    if known == "numeric" and modifier >= 4:
        packed = modifier - 4
        return field_of_name(name, f"numeric({packed >> 16},{packed & 0xFFFF})")
    return field_of_name(name, known)


def field_of_name(name: str, text: str) -> pa.Field:
    """Return the column of a type by its name: `numeric(9,2)`, `integer[]`."""
    kind = text.strip().lower()
    if kind.endswith("[]"):
        return pa.field(name, pa.list_(field_of_name("element", kind[:-2])))
    numeric = _NUMERIC.match(kind)
    if numeric is not None:
        return pa.field(name, _numeric(numeric[1], numeric[2]))
    kind = " ".join(_MODIFIER.sub("", kind).split())
    metadata = _UUID if kind == "uuid" else None
    return pa.field(name, _BY_NAME.get(kind, pa.string()), metadata=metadata)


def _numeric(precision: str | None, scale: str | None) -> pa.DataType:
    if precision is None:
        return pa.string()
    digits, after = int(precision), int(scale or 0)
    if not 0 < digits <= _MOST_DIGITS or not 0 <= after <= digits:
        return pa.string()
    return pa.decimal128(digits, after)
