"""`Lake.convert`: a table becomes one of the other format, in place.

Its mirror is brought to where it is, then the two change places: the table as it was takes no more
commits and is a mirror of what was its own, and the name is given to the other. Each step can be
done again, so a conversion that broke off is finished by another call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.catalog import formats
from rowlake.commit.metadata import commit_metadata
from rowlake.errors import CommitConflictError, InternalError, InvalidStatementError
from rowlake.mirror import sync
from rowlake.model.mirror import MIRROR_OF
from rowlake.model.names import quoted, table_levels

if TYPE_CHECKING:
    from rowlake.model.format import Format, Payload
    from rowlake.model.handle import TableHandle
    from rowlake.model.names import Name

ACTION = "convert"


class _Moved(Exception):
    """The table has commits that its mirror has not."""


def convert(catalog: Any, name: Name, to: str) -> TableHandle:
    """Return the table under metadata of another format, by which its name is known from now on."""
    target = formats.format_named(to)
    handle = formats.load_table(catalog, name)
    if handle.format.name == target.name:
        raise InvalidStatementError(
            f"Cannot convert {quoted(table_levels(name))}: it is a table of the format "
            f"{target.name} already."
        )
    formats.validate_renaming(catalog, handle, target)
    if MIRROR_OF not in handle.properties:
        handle = _retired(handle, target)
    mirror = _successor(handle, target)
    if MIRROR_OF in mirror.properties:
        mirror = commit_metadata(mirror, ACTION, mirror.format.release_mirror)
    return formats.give_name(catalog, handle, mirror)


def _retired(handle: TableHandle, target: Format) -> TableHandle:
    """Bring the mirror forward, and let the table take no more commits."""
    for _ in range(sync.MOST_TRIES):
        stands = sync.mirror(handle, target)
        mirror = target.find_mirror(handle)
        if mirror is None:
            raise InternalError(f"{handle.name} was mirrored, and has no mirror.")
        uuid = mirror.uuid

        def retire(
            newest: TableHandle, stands: int | None = stands.snapshot_id, uuid: str = uuid
        ) -> Payload:
            if newest.current_snapshot_id != stands:
                raise _Moved
            return newest.format.retire(newest, uuid)

        try:
            return commit_metadata(handle, ACTION, retire)
        except _Moved:
            handle = handle.format.refresh(handle)
    raise CommitConflictError(
        ACTION, handle.name, "other writers committed all the time", retryable=True
    )


def _successor(handle: TableHandle, target: Format) -> TableHandle:
    """Return the table that takes the place of one which was retired for it."""
    found = target.find_mirror(handle)
    if found is None:
        raise InternalError(f"What took the place of {handle.name} is not there.")
    return found
