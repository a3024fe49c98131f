"""Metadata tables (`ns.t.snapshots`, `ns.t.files`, …): what a format tells about a table.

The format knows most of them; those that need the contents of delete files are read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.verbs.inspect_deletes import position_deletes

if TYPE_CHECKING:
    import pyarrow as pa

    from rowlake.model.handle import TableHandle


def metadata_table(
    handle: TableHandle, name: str, *, snapshot_id: int | None = None, ref: str | None = None
) -> pa.Table:
    """Return a metadata table by its name, at a snapshot where that means something."""
    if name.lower() == "position_deletes":
        return position_deletes(handle.view(snapshot_id=snapshot_id, ref=ref), handle.storage)
    return handle.format.metadata_table(handle, name, snapshot_id=snapshot_id, ref=ref)
