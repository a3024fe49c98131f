"""What Delta tables may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.delta.row_tracking import row_id_columns
from rowlake.model.format import Capabilities

if TYPE_CHECKING:
    from rowlake.delta.metadata import Metadata

ENABLE_VECTORS = "delta.enableDeletionVectors"


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
    )
