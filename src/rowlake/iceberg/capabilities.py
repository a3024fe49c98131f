"""What tables of each Iceberg format version may hold."""

from __future__ import annotations

from rowlake.model.format import Capabilities


def capabilities_of(format_version: int) -> Capabilities:
    """Return what tables of a format version may hold (spec, "Version 1" to "Version 3").

    From version 3 on position deletes are deletion vectors only (spec, "Deletion Vectors").
    """
    return Capabilities(
        position_deletes=format_version == 2,
        deletion_vectors=format_version >= 3,
        equality_deletes=format_version >= 2,
        row_ids=format_version >= 3,
        sequence_numbers=format_version >= 2,
        column_defaults=format_version >= 3,
        manifests=True,
    )
