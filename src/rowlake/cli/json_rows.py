"""Rows as JSON that no reader misreads: ids as texts, maps as objects, times with their zone.

Most JSON readers (jq, JavaScript) keep numbers as doubles, which hold 53 bits: snapshot ids, and
columns with a larger number, are texts.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

LARGEST_NUMBER = 2**53 - 1
_IDS = ("snapshot_id", "snapshot_ids", "parent_id")


@dataclass(frozen=True)
class Rows:
    """Rows of Python values, with the Arrow types of their columns."""

    schema: pa.Schema
    values: list[tuple[Any, ...]]

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        names = self.schema.names
        return pa.Table.from_pylist(
            [dict(zip(names, row, strict=True)) for row in self.values], self.schema
        )


def json_text(objects: list[dict[str, Any]]) -> str:
    """Return objects as an indented JSON text."""
    return json.dumps(objects, default=plain, indent=2, ensure_ascii=False)


def json_objects(rows: Rows) -> list[dict[str, Any]]:
    """Return rows as objects for JSON."""
    columns = [
        _column(field, [row[place] for row in rows.values])
        for place, field in enumerate(rows.schema)
    ]
    names = rows.schema.names
    if not columns:
        return [{} for _ in rows.values]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def with_text_ids(name: str, value: Any) -> Any:
    """Return a field of a report, the ids of snapshots as texts."""
    if not name.endswith(_IDS) or value is None:
        return value
    return [str(one) for one in value] if isinstance(value, (list, tuple)) else str(value)


def _column(field: pa.Field, values: list[Any]) -> list[Any]:
    if pa.types.is_integer(field.type):
        is_large = any(abs(value) > LARGEST_NUMBER for value in values if value is not None)
        if is_large or field.name.endswith(_IDS):
            return [None if value is None else str(value) for value in values]
        return values
    return [_value(value, field.type) for value in values]


def _value(value: Any, kind: pa.DataType) -> Any:
    """Return a value with its maps as objects, or as pairs where a key is no text."""
    types = pa.types
    if value is None or not types.is_nested(kind):
        return value
    if types.is_map(kind):
        pairs = value.items() if isinstance(value, dict) else value
        found = [(key, _value(one, kind.item_type)) for key, one in pairs]
        return dict(found) if types.is_string(kind.key_type) else found
    if types.is_struct(kind):
        return {field.name: _value(value.get(field.name), field.type) for field in kind}
    return [_value(one, kind.value_type) for one in value]


def plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str(value)
