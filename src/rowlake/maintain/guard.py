"""What every maintenance verb checks first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from rowlake.model.handle import TableHandle

GC_ENABLED = "gc.enabled"


def check_outside_transaction(handle: TableHandle, verb: str) -> None:
    """Maintenance commits step by step and removes files, which a transaction cannot take back."""
    if handle.is_in_transaction:
        raise UnsupportedFeatureError(
            f"Cannot run {verb} on {handle.name} inside a transaction: run it on its own."
        )


def may_delete_files(handle: TableHandle) -> bool:
    """Return whether files of the table may be deleted: they may belong to other tables too."""
    return str(handle.properties.get(GC_ENABLED, "true")).lower() != "false"
