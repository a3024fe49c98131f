"""What Delta tables may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.delta.row_tracking import row_id_columns
from rowlake.model.format import Capabilities

if TYPE_CHECKING:
    from rowlake.delta.metadata import Metadata

ENABLE_VECTORS = "delta.enableDeletionVectors"


_NO_VECTORS = f"needs deletion vectors: set the table property {ENABLE_VECTORS}"
_REFUSALS = {
    "position": "is not for Delta tables, whose deleted rows are in deletion vectors. Leave it out",
    "equality": "is not for Delta tables, which have no equality deletes. Leave it out",
    "vector": f"{_NO_VECTORS}, or leave it out",
    "merge-on-read": f"{_NO_VECTORS}, or use copy-on-write",
}


def capabilities_of(metadata: Metadata) -> Capabilities:
    """Return what a table may hold: vectors may be written only where its property says so."""
    return Capabilities(
        position_deletes=False,
        deletion_vectors=metadata.is_set(ENABLE_VECTORS),
        equality_deletes=False,
        row_ids=bool(row_id_columns(metadata)),
        sequence_numbers=True,
        branches=False,
        transforms=False,
        column_defaults=True,
        check_constraints=True,
        manifests=False,
        exact_bounds=False,
        existing_files=False,
        snapshot_expiry=False,
        column_ids=metadata.column_mapping != "none",
        refusals=_REFUSALS,
    )
