"""Columns that events have and the table has not, or not as wide: the table follows.

Comes in: Arrow fields of events. Goes out: the table after one change of its schema, or as it is.
Columns are added as optional ones; numbers and decimals are widened as Iceberg allows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import UnsupportedFeatureError
from rowlake.model.schema import type_name
from rowlake.verbs.alter import change_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowlake.model.handle import TableHandle
    from rowlake.model.schema import Schema

_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.uint8(): "int",
    pa.uint16(): "int",
    pa.int64(): "long",
    pa.uint32(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.null(): "string",
}


def grown(handle: TableHandle, schema: Schema, fields: Iterable[pa.Field]) -> TableHandle:
    """Return the table with room for these columns; the same handle where it has it."""
    added, widened = [], []
    for field in fields:
        held = schema.find((field.name,))
        if held is None:
            added.append((field.name, type_json(field)))
        elif _is_wider(held, field):
            widened.append((held.name, type_json(field)))
    if not added and not widened:
        return handle

    def change(builder: Any) -> None:
        for name, kind in added:
            builder.add_column((name,), kind)
        for name, kind in widened:
            builder.update_column((name,), kind)

    return change_schema(handle, change)


def type_json(field: pa.Field) -> Any:
    """Return the table format's JSON form of an Arrow field's type."""
    kind, types = field.type, pa.types
    if type_name(field) is not None:
        return type_name(field)
    if kind in _NAMES:
        return _NAMES[kind]
    if types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    if types.is_time(kind):
        return "time"
    if types.is_fixed_size_binary(kind):
        return f"fixed[{kind.byte_width}]"
    if types.is_list(kind) or types.is_large_list(kind):
        element = type_json(kind.value_field)
        return {"type": "list", "element-id": 1, "element": element, "element-required": False}
    raise UnsupportedFeatureError(
        f"Cannot add column {field.name} of type {kind} by schema evolution. Add it with ALTER "
        "TABLE … ADD COLUMN, or leave it out."
    )


def schema_json(fields: Sequence[pa.Field], keys: Sequence[str]) -> dict[str, Any]:
    """Return the JSON form of a new table's schema: the keys are its identifier fields."""
    numbers = {field.name: at for at, field in enumerate(fields, start=1)}
    return {
        "type": "struct",
        "schema-id": 0,
        "identifier-field-ids": [numbers[name] for name in keys],
        "fields": [
            {
                "id": numbers[field.name],
                "name": field.name,
                "required": field.name in keys,
                "type": _renumbered(type_json(field), len(fields) + 10 * numbers[field.name]),
            }
            for field in fields
        ],
    }


def _renumbered(kind: Any, number: int) -> Any:
    """Return a type whose elements have numbers of their own."""
    if not isinstance(kind, dict):
        return kind
    return {**kind, "element-id": number, "element": _renumbered(kind["element"], number + 1)}


def _is_wider(held: pa.Field, given: pa.Field) -> bool:
    before, after = held.type, given.type
    if before == pa.int32():
        return bool(after == pa.int64())
    if before == pa.float32():
        return bool(after == pa.float64())
    if pa.types.is_decimal(before) and pa.types.is_decimal(after):
        return bool(after.precision > before.precision and after.scale == before.scale)
    return False
