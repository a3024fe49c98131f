"""`Table.mirror`: a table and the name of a format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.catalog.formats import format_named
from rowlake.mirror import sync

if TYPE_CHECKING:
    from rowlake.model.handle import TableHandle
    from rowlake.model.mirror import Mirrored


def mirror(handle: TableHandle, name: str) -> Mirrored:
    """Bring the mirror of a table in the format of this name forward."""
    return sync.mirror(handle, format_named(name))
