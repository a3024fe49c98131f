"""The tables that the procedures of this package take."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rowlake.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from rowlake.catalog.handle import IcebergHandle
    from rowlake.model.handle import TableHandle

ICEBERG = "iceberg"


def iceberg_handle(handle: TableHandle, verb: str) -> IcebergHandle:
    """Return a handle as Iceberg's own; refuse a table of another format."""
    if handle.format.name != ICEBERG:
        raise UnsupportedFeatureError(
            f"{verb} is for Iceberg tables; {handle.name} is a {handle.format.name} table."
        )
    return cast("IcebergHandle", handle)
