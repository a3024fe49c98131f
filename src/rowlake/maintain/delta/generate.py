"""GENERATE: lists of a Delta table's files for engines that cannot read its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.delta.symlink_manifests import MODE, write_manifests
from rowlake.errors import InvalidStatementError
from rowlake.maintain.delta.handles import delta_handle

if TYPE_CHECKING:
    from rowlake.model.handle import TableHandle

VERB = "GENERATE"


def generate(handle: TableHandle, mode: str) -> None:
    """Write the manifests of the newest version; `mode` is `symlink_format_manifest`."""
    table = delta_handle(handle, VERB)
    if mode.lower() != MODE:
        raise InvalidStatementError(f"Cannot generate {mode} (expected one of: {MODE}).")
    write_manifests(table.state)
