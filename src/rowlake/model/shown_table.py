"""Arrow tables that notebooks show as tables: those that say so in their schema's metadata.

Arrow's class cannot be extended, so IPython is told how to show it (`rowlake.notebook`); tables
without the mark stay as Arrow prints them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rowlake.model import markup

if TYPE_CHECKING:
    import pyarrow as pa

MARK = b"rowlake.shown"


def marked(table: pa.Table, title: str) -> pa.Table:
    """Return a table that notebooks show under a title."""
    kept = table.schema.metadata or {}
    return table.replace_schema_metadata({**kept, MARK: title.encode("utf-8", "replace")})


def html_of_marked(table: pa.Table) -> str | None:
    """Return a marked table as HTML, None for any other."""
    title = (table.schema.metadata or {}).get(MARK)
    return None if title is None else html_table(table, title.decode("utf-8", "replace"))


def html_table(table: pa.Table, title: str = "") -> str:
    """Return the first rows of a table as HTML; a text of several lines keeps its shape."""
    head = markup.heading(title) if title else ""
    if table.num_columns == 1 and table.num_rows == 1:
        only = table.column(0)[0].as_py()
        if isinstance(only, str) and "\n" in only:
            return markup.block(head, markup.tree(only))
    shown = table.slice(0, markup.MOST_ROWS)
    columns = [[markup.cell(plain(value)) for value in _values(column)] for column in shown.columns]
    body = markup.table(table.column_names, zip(*columns, strict=True)) if columns else ""
    rest = table.num_rows - shown.num_rows
    more = markup.note(f"{rest:,} more rows") if rest > 0 else ""
    return markup.block(head, body, more)


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):  # a time beyond Python's
        return list(column.cast("string").to_pylist())


def plain(value: Any) -> Any:
    """Return a value as a cell shows it: ids stay whole, structs and lists become JSON."""
    if isinstance(value, (dict, list)):
        return json.dumps(value, default=str, ensure_ascii=False)
    if isinstance(value, bytes):
        return value.hex(" ") if len(value) <= 64 else f"{value[:64].hex(' ')} …"
    return value
