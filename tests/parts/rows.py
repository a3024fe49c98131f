"""Rows in a form that compares: the same for Arrow tables of ours, of Spark and of other readers.

NaN equals NaN, zeros keep their sign, times with a zone are in UTC, uuids are text, maps have no
order, and rows are sorted.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable

UUID_BYTES = 16


def rows_of(found: Any) -> list[tuple[Any, ...]]:
    """Return the rows of an Arrow table or a Spark DataFrame, sorted."""
    table = found if isinstance(found, pa.Table) else found.toArrow()
    columns = [
        _column(table.column(place), table.field(place)) for place in range(table.num_columns)
    ]
    if not columns:
        return [()] * table.num_rows
    return sorted_rows(zip(*columns, strict=True))


def sorted_rows(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows in an order that depends on their values only."""
    return sorted((tuple(plain(value) for value in row) for row in rows), key=repr)


def _column(values: pa.ChunkedArray, field: pa.Field) -> list[Any]:
    found = values.to_pylist()
    if (field.metadata or {}).get(b"rowlake:type") == b"uuid":
        return [
            str(uuid.UUID(bytes=value)) if isinstance(value, bytes) else value for value in found
        ]
    return found


def plain(value: Any) -> Any:
    """Return one value in the form that compares."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    if isinstance(value, dict):
        return tuple((key, plain(part)) for key, part in value.items())
    if isinstance(value, list | tuple):
        parts = [plain(part) for part in value]
        is_map = bool(parts) and all(isinstance(part, tuple) for part in value)
        return tuple(sorted(parts, key=repr) if is_map else parts)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.timezone.utc)
    return value
