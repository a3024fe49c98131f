"""Rows as text lines, the same for what rowlake and what Iceberg Java reads."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def lines_of(table: pa.Table) -> list[str]:
    """Return the column names and the rows, which are sorted."""
    columns = [column.to_pylist() for column in table.columns]
    rows = sorted(" | ".join(map(text_of, row)) for row in zip(*columns, strict=True))
    return [" | ".join(table.column_names), *rows]


def arrow_of(frame: Any) -> pa.Table:
    """Return the rows of a DataFrame.

    PySpark fails where a struct with a required field is null, so all fields are made nullable.
    """
    kinds = [(f"`{field.name}`", field.dataType.simpleString()) for field in frame.schema.fields]
    if not any("struct<" in kind for _, kind in kinds):
        return frame.toArrow()
    nullable = [f"CAST({name} AS {kind}) AS {name}" for name, kind in kinds]
    return frame.selectExpr(*nullable).toArrow()


def text_of(value: Any) -> str:
    """Return a value as SQL users would write it; texts that could mislead are quoted."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    if isinstance(value, str):
        return repr(value) if value.strip() != value or value in ("", "null") else value
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, dt.datetime):
        # A zone shows as Z: values of time zones come as instants.
        aware = value.tzinfo is not None
        shown = value.astimezone(dt.timezone.utc).replace(tzinfo=None) if aware else value
        return shown.isoformat(" ") + ("Z" if aware else "")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {text_of(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(text_of, value)) + "]"
    if isinstance(value, tuple):
        return " -> ".join(map(text_of, value))
    return str(value)
