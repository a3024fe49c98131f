"""What tables of each Iceberg format version may hold."""

from __future__ import annotations

from rowlake.model.format import Capabilities

# Which versions have each kind of delete files.
_VERSIONS = {
    "position": "2",
    "equality": "2 or 3",
    "vector": "3",
    "merge-on-read": "2 or 3",
}


def _refusal(kind: str, format_version: int) -> str:
    instead = "use copy-on-write" if kind == "merge-on-read" else "leave it out"
    return (
        f"needs a table of format version {_VERSIONS[kind]}; this one has {format_version}. "
        f"Set the table property format-version, or {instead}"
    )


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
        refusals={kind: _refusal(kind, format_version) for kind in _VERSIONS},
    )
