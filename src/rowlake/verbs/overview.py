"""How notebooks show tables and lakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.catalog import formats
from rowlake.errors import RowlakeError
from rowlake.model import markup
from rowlake.model.health import count_text
from rowlake.model.overview import overview_of
from rowlake.model.snapshot_list import when
from rowlake.model.table_schema import table_schema, table_spec
from rowlake.secrets import without_passwords

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.model.handle import TableHandle

SHOWN_TABLES = 50


def table_html(handle: TableHandle) -> str:
    """Return a table for a notebook: what it is, its columns, its partitioning."""
    view, found = handle.view(), overview_of(handle)
    schema, spec = table_schema(view.schema), table_spec(view)
    counts = [_counted(found.rows, "row"), _counted(found.files, "data file")]
    below = [f"{found.format} v{found.format_version}", *filter(None, counts)]
    below.append(f"changed {when(found.last_updated_ms)}")
    parted = ", ".join(
        f"{one.transform}({schema.find_column_name(one.source_id)})" for one in spec.fields
    )
    columns = [
        [
            markup.cell(one.name),
            markup.cell(str(one.field_type)),
            markup.cell("not null" if one.required else ""),
            markup.cell(one.doc or ""),
        ]
        for one in schema.fields
    ]
    return markup.block(
        markup.heading(handle.name, " · ".join(below)),
        markup.table(("column", "type", "", "comment"), columns),
        markup.note(f"partitioned by {parted}") if parted else "",
        markup.note(without_passwords(handle.location)),
    )


def lake_html(catalog: Any, names: Sequence[str]) -> str:
    """Return a lake for a notebook: its tables, the first ones with what they hold."""
    rows = [_table_row(catalog, name) for name in names[:SHOWN_TABLES]]
    rest = len(names) - len(rows)
    return markup.block(
        markup.heading(f"Lake {catalog.name}", count_text(len(names), "table")),
        markup.table(("table", "format", "rows", "data files", "changed"), rows) if rows else "",
        markup.note(f"{rest:,} more tables") if rest > 0 else "",
    )


def _table_row(catalog: Any, name: str) -> list[str]:
    try:
        found = overview_of(formats.load_table(catalog, name))
    except RowlakeError as error:
        return [markup.cell(name), markup.cell(str(error)), *[markup.cell("")] * 3]
    kind = f"{found.format} v{found.format_version}"
    told = (name, kind, found.rows, found.files, when(found.last_updated_ms))
    return [*map(markup.cell, told)]


def _counted(number: int | None, noun: str) -> str:
    return "" if number is None else count_text(number, noun)
