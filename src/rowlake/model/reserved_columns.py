"""Names that Iceberg reserves for metadata columns: no column of a table can have one."""

from __future__ import annotations

from rowlake.errors import InvalidStatementError

RESERVED_COLUMNS = frozenset(
    {
        "_file",
        "_pos",
        "_deleted",
        "_spec_id",
        "_partition",
        "_row_id",
        "_last_updated_sequence_number",
        "_change_type",
        "_change_ordinal",
        "_commit_snapshot_id",
    }
)


def validate_column_name(name: str) -> None:
    """Refuse a name of a top-level column that readers take for a metadata column."""
    if name.lower() in RESERVED_COLUMNS:
        raise InvalidStatementError(
            f"A column cannot be called {name}: Iceberg reserves the name for a metadata column, "
            "which it would hide. Choose another name."
        )
