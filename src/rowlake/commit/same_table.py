"""Whether the table that others left is still one that a commit was made for."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pyarrow.compute as pc

from rowlake.catalog.outcome import Conflict
from rowlake.catalog.tables import refresh
from rowlake.commit.validate import Breach
from rowlake.errors import InvalidStatementError
from rowlake.model.files import Content

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowlake.catalog.handle import TableHandle
    from rowlake.model.change import Change

Outcomes = TypeVar("Outcomes")

MADE_ANEW = "another writer dropped the table and made one of the same name"
_WITH_VECTORS = 3


def is_made_anew(read: TableHandle, newest: TableHandle) -> bool:
    """Tell whether a name means another table by now, which nothing may be committed to."""
    return read.metadata.table_uuid != newest.metadata.table_uuid


def swap_unless_upgraded(
    handles: Sequence[TableHandle], swap: Callable[[], Outcomes]
) -> Outcomes | Conflict:
    """Return what a swap gives; a conflict where it fails because a table was upgraded meanwhile.

    A snapshot that was made for one format version is no valid one of the next, and the branch
    need not have moved.
    """
    try:
        return swap()
    except InvalidStatementError as error:
        versions = [(one, refresh(one)) for one in handles if not one.is_staged]
        if all(one.metadata.format_version == now.metadata.format_version for one, now in versions):
            raise
        return Conflict(str(error))


def find_outdated(change: Change, written_for: int, newest: TableHandle) -> Breach | None:
    """Return why files written for one format version may not land in the newest one.

    From version 3 on deleted rows are marked by vectors only (spec, "Deletion Vectors"), and rows
    that are written again keep their ids (spec, "Row Lineage"), which older files do not hold.
    """
    version = newest.metadata.format_version
    if version < _WITH_VECTORS or written_for >= _WITH_VECTORS:
        return None
    marks = pc.equal(change.added_deletes["content"], int(Content.POSITION_DELETES))
    rewrites = bool(change.removed_data) and bool(change.added_data.num_rows)
    if not rewrites and not pc.any(marks).as_py():
        return None
    cause = f"the table was upgraded from format version {written_for} to {version} meanwhile"
    return Breach(cause, same_rows=True)
