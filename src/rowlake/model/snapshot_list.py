"""The snapshots of a table as a list that notebooks show as a table."""

from __future__ import annotations

import datetime

from rowlake.model import markup
from rowlake.model.provenance import provenance_of
from rowlake.model.view import SnapshotInfo

_NAMES = ("committed", "snapshot id", "statement", "updated", "deleted", "inserted", "rows", "who")


class SnapshotList(list[SnapshotInfo]):
    """Snapshots, oldest first."""

    def _repr_html_(self) -> str:
        shown = self[-markup.MOST_ROWS :]
        made = provenance_of(self)
        rows = []
        for snapshot in shown:
            told = made[snapshot.snapshot_id]
            counts = (told.rows_updated, told.rows_deleted, told.rows_inserted, told.total_rows)
            cells = (when(snapshot.timestamp_ms), str(snapshot.snapshot_id), told.statement)
            rows.append([*map(markup.cell, (*cells, *counts, told.user or ""))])
        rest = len(self) - len(shown)
        more = markup.note(f"the last {len(shown):,} of {len(self):,}") if rest else ""
        return markup.block(markup.table(_NAMES, rows), more)


def when(milliseconds: int) -> str:
    """Return a time in UTC, to the second."""
    try:
        found = datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.timezone.utc)
    except (ValueError, OverflowError, OSError):  # metadata may say anything
        return f"{milliseconds} ms"
    return f"{found:%Y-%m-%d %H:%M:%S} UTC"
