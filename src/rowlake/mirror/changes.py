"""What a mirror lands: a commit of its table again, or all that tells it from its table.

The difference is for a mirror that is new, and for one whose table did not go on from where the
mirror stands: it was rolled back, replaced, or its history has expired. It costs a look at all
files of both; a commit costs its own files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.mirror.files import Translation, locations_in, vector_keys
from rowlake.model.app_batch import AppBatch
from rowlake.model.change import Change, Operation
from rowlake.model.format import FileAction
from rowlake.model.mirror import APP_ID, SOURCE_OPERATION, SOURCE_SNAPSHOT
from rowlake.model.predicate import TRUE

if TYPE_CHECKING:
    from collections.abc import Collection

    from rowlake.model.format import FilesBySpec, LandedCommit
    from rowlake.model.handle import TableHandle
    from rowlake.model.view import SnapshotInfo

_OPERATIONS = {one.value: one for one in Operation}


def change_of(commit: LandedCommit, translate: Translation) -> Change:
    """Return a commit of the table as a change of its mirror."""
    return Change(
        _OPERATIONS.get(commit.snapshot.operation, Operation.OVERWRITE),
        added_data=translate.data(commit.read(FileAction.ADDED_DATA)),
        added_deletes=translate.vectors(commit.read(FileAction.ADDED_DELETES)),
        removed_data=frozenset(locations_in(commit.read(FileAction.REMOVED_DATA))),
        removed_deletes=frozenset(vector_keys(commit.read(FileAction.REMOVED_DELETES))),
        properties=_told(commit.snapshot),
        app_batch=AppBatch(APP_ID, commit.snapshot.snapshot_id),
    )


def difference(
    source: TableHandle, mirror: TableHandle, translate: Translation, *, again: bool
) -> Change:
    """Return what makes the mirror equal to its table.

    `again`: files that the mirror has are added once more, since it says other things of them.
    """
    here, there = _live(source), _live(mirror)
    known = set() if again else there.locations
    new = here.locations - known
    kept = here.locations & there.locations
    differ = {one for one in kept if here.keys.get(one) != there.keys.get(one)}
    old_keys = {there.keys[one] for one in differ - new if one in there.keys}
    removed = (there.locations - here.locations) | (differ & new)
    head = source.snapshot(source.current_snapshot_id)
    return Change(
        _operation(new=bool(new), gone=bool(removed or differ), again=again),
        added_data=translate.data(_at(here.data, "location", new)),
        added_deletes=translate.vectors(_at(here.deletes, "referenced_data_file", new | differ)),
        removed_data=frozenset(removed),
        removed_deletes=frozenset(old_keys),
        properties=_told(head) if head else {},
        app_batch=AppBatch(APP_ID, head.snapshot_id) if head else None,
    )


def _operation(*, new: bool, gone: bool, again: bool) -> Operation:
    if again:
        return Operation.REPLACE
    if gone:
        return Operation.OVERWRITE if new else Operation.DELETE
    return Operation.APPEND


def _told(snapshot: SnapshotInfo) -> dict[str, str]:
    return {
        SOURCE_SNAPSHOT: str(snapshot.snapshot_id),
        SOURCE_OPERATION: snapshot.operation or "unknown",
    }


@dataclass(frozen=True)
class _Live:
    """The live files of a table; `keys` are those of vectors by data file."""

    data: FilesBySpec
    deletes: FilesBySpec

    @property
    def locations(self) -> set[str]:
        return locations_in(self.data)

    @property
    def keys(self) -> dict[str | None, tuple[str, int | None]]:
        return {of: key for key, of in vector_keys(self.deletes).items()}


def _live(handle: TableHandle) -> _Live:
    if handle.is_staged or handle.current_snapshot_id is None:
        return _Live({}, {})
    listing = handle.format.list_files(handle.view(), TRUE, handle.storage)
    return _Live(listing.data(), listing.deletes())


def _at(files: FilesBySpec, column: str, places: Collection[str]) -> FilesBySpec:
    """Return files that are, or are of data files, at some locations; others than vectors stay."""
    wanted = pa.array(sorted(places), pa.string())
    return {
        spec_id: one.filter(
            pc.or_(pc.is_in(one[column], value_set=wanted), pc.is_null(one[column]))
        )
        for spec_id, one in files.items()
    }
