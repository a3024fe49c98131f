"""A table at a glance: format, rows, files and the last change, from metadata that is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.model.provenance import provenance_of

if TYPE_CHECKING:
    from rowlake.model.handle import TableHandle


@dataclass(frozen=True)
class Overview:
    """What the metadata of a table says; counts that nobody wrote down are None."""

    format: str
    format_version: int
    rows: int | None
    files: int | None
    last_updated_ms: int


def overview_of(handle: TableHandle) -> Overview:
    """Return a table at a glance, from metadata that is loaded already."""
    number = handle.current_snapshot_id
    made = None if number is None else provenance_of(handle.snapshots).get(number)
    current = None if number is None else handle.snapshot(number)
    files = current.summary.get("total-data-files") if current else 0
    return Overview(
        handle.format.name,
        handle.format_version,
        made.total_rows if made else (None if current else 0),
        None if files is None else int(files),
        handle.last_updated_ms,
    )
