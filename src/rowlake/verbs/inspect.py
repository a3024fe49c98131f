"""Metadata tables (`ns.t.snapshots`, `ns.t.files`, …): what a format tells about a table.

The format knows most of them; those that need the contents of delete files are read here.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.model.provenance import Provenance, provenance_of
from rowlake.model.shown_table import marked
from rowlake.verbs.inspect_deletes import position_deletes

if TYPE_CHECKING:
    from rowlake.model.handle import TableHandle


def metadata_table(
    handle: TableHandle, name: str, *, snapshot_id: int | None = None, ref: str | None = None
) -> pa.Table:
    """Return a metadata table by its name, at a snapshot where that means something."""
    if name.lower() == "position_deletes":
        return position_deletes(handle.view(snapshot_id=snapshot_id, ref=ref), handle.storage)
    return handle.format.metadata_table(handle, name, snapshot_id=snapshot_id, ref=ref)


def history(handle: TableHandle) -> pa.Table:
    """Return what was current when, with what made each snapshot where the format has it apart."""
    title = f"History of {handle.name}"
    found = metadata_table(handle, "history")
    if "snapshot_id" not in found.column_names:
        return marked(found, title)  # Delta's history tells it in columns of its own
    made = provenance_of(handle.snapshots)
    rows = [made.get(number) for number in found["snapshot_id"].to_pylist()]
    for item in fields(Provenance):
        kind = pa.int64() if "rows" in item.name else pa.string()
        values = [None if one is None else getattr(one, item.name) for one in rows]
        found = found.append_column(item.name, pa.array(values, kind))
    return marked(found, title)
