"""Whether the files of a table may be deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError

if TYPE_CHECKING:
    from rowlake.catalog.handle import IcebergHandle

GC_ENABLED = "gc.enabled"


def gc_allowed(handle: IcebergHandle) -> None:
    """Check that the table's files may be deleted: they may belong to another table too."""
    if str(handle.metadata.properties.get(GC_ENABLED, "true")).lower() == "false":
        raise InvalidStatementError(
            f"Cannot purge {handle.name}: its property {GC_ENABLED} is false, since its files may "
            f"belong to other tables. Drop it without purging, or set the property first."
        )
