"""Whether the table that others left is still one that a commit was made for."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pyarrow.compute as pc

from rowlake.commit.validate import Breach
from rowlake.errors import InvalidStatementError
from rowlake.model.files import Content
from rowlake.model.outcome import Conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowlake.model.change import Change
    from rowlake.model.format import Capabilities
    from rowlake.model.handle import TableHandle

Outcomes = TypeVar("Outcomes")

RECREATED = "another writer dropped the table and made one of the same name"


def is_recreated(read: TableHandle, newest: TableHandle) -> bool:
    """Return whether a name means another table by now, which nothing may be committed to."""
    return read.uuid != newest.uuid


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
        if not any(_is_upgraded(one) for one in handles if not one.is_staged):
            raise
        return Conflict(str(error))


def _is_upgraded(handle: TableHandle) -> bool:
    return handle.format.refresh(handle).can != handle.can


def find_outdated(change: Change, written_for: Capabilities, newest: TableHandle) -> Breach | None:
    """Return why files written for what a table could hold may not land in it after an upgrade.

    Where deletion vectors delete rows, nothing else does (Iceberg spec, "Deletion Vectors"), and
    rows that are written again keep their ids (spec, "Row Lineage"), which older files do not hold.
    """
    needs_vectors = newest.can.deletion_vectors and not written_for.deletion_vectors
    needs_row_ids = newest.can.row_ids and not written_for.row_ids
    if not needs_vectors and not needs_row_ids:
        return None
    by_position = pc.equal(change.added_deletes["content"], int(Content.POSITION_DELETES))
    rewrites = bool(change.removed_data) and bool(change.added_data.num_rows)
    if not (rewrites and needs_row_ids) and not (needs_vectors and pc.any(by_position).as_py()):
        return None
    version = newest.format_version
    cause = f"the table was upgraded to format version {version} by another writer"
    return Breach(cause, same_rows=True)
