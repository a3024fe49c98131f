"""What a mirror refers to: files that its table must not take for nobody's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.catalog.formats import FORMATS
from rowlake.errors import CorruptTableError, UnsupportedFeatureError
from rowlake.mirror.changes import live_files
from rowlake.mirror.files import locations_in

if TYPE_CHECKING:
    from rowlake.model.handle import TableHandle


def mirror_of(handle: TableHandle) -> TableHandle | None:
    """Return the mirror in the folder of a table, None where there is none."""
    for one in FORMATS.values():
        found = None if one.name == handle.format.name else _found(one.name, handle)
        if found is not None:
            return found
    return None


def _found(name: str, handle: TableHandle) -> TableHandle | None:
    try:
        return FORMATS[name].find_mirror(handle)
    except (UnsupportedFeatureError, CorruptTableError):  # none that could be one of this table
        return None


def files_of(mirror: TableHandle) -> list[str]:
    """Return the data files and vector files that a mirror has; it may be behind its table."""
    live = live_files(mirror)
    return sorted(locations_in(live.data) | locations_in(live.deletes))
