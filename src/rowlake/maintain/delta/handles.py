"""The tables that the statements of this package take."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rowlake.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from rowlake.delta.handle import DeltaHandle
    from rowlake.model.handle import TableHandle

DELTA = "delta"


def delta_handle(handle: TableHandle, verb: str, instead: str = "") -> DeltaHandle:
    """Return a handle as Delta's own; refuse a table of another format."""
    if handle.format.name != DELTA:
        advice = f" {instead}" if instead else ""
        raise UnsupportedFeatureError(
            f"{verb} is for Delta tables; {handle.name} is a {handle.format.name} table.{advice}"
        )
    return cast("DeltaHandle", handle)
