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

from rowlake.mirror.files import Translation, locations_in, one_spelling, vector_keys
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

    def read(action: FileAction) -> FilesBySpec:
        return one_spelling(commit.read(action))

    return Change(
        _OPERATIONS.get(commit.snapshot.operation, Operation.OVERWRITE),
        added_data=translate.data(read(FileAction.ADDED_DATA)),
        added_deletes=translate.vectors(read(FileAction.ADDED_DELETES)),
        removed_data=frozenset(locations_in(read(FileAction.REMOVED_DATA))),
        removed_deletes=frozenset(vector_keys(read(FileAction.REMOVED_DELETES))),
        properties=_told(commit.snapshot),
        app_batch=AppBatch(APP_ID, commit.snapshot.snapshot_id),
    )


def restates_files(change: Change) -> bool:
    """Return whether a commit may add files that the table has: it adds some, and no rows.

    Delta's writers do so to say more of a file (statistics, row ids).
    """
    is_rewrite = change.operation is Operation.REPLACE
    return is_rewrite and change.added_data.num_rows > 0 and not change.removed_data


def difference(
    source: TableHandle, mirror: TableHandle, translate: Translation, *, again: bool
) -> Change:
    """Return what makes the mirror equal to its table.

    `again`: files that the mirror has are added once more, since it says other things of them.
    """
    here, there = live_files(source), live_files(mirror)
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
        verb="restate" if again else "",
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
class LiveFiles:
    """The live files of a table."""

    data: FilesBySpec
    deletes: FilesBySpec

    @property
    def locations(self) -> set[str]:
        """Where the data files are."""
        return locations_in(self.data)

    @property
    def keys(self) -> dict[str | None, tuple[str, int | None]]:
        """The keys of vectors by data file."""
        return {of: key for key, of in vector_keys(self.deletes).items()}


def live_files(handle: TableHandle) -> LiveFiles:
    """Return the live files of a table; none of one that has no commit."""
    if handle.is_staged or handle.current_snapshot_id is None:
        return LiveFiles({}, {})
    listing = handle.format.list_files(handle.view(), TRUE, handle.storage)
    return LiveFiles(one_spelling(listing.data()), one_spelling(listing.deletes()))


def _at(files: FilesBySpec, column: str, places: Collection[str]) -> FilesBySpec:
    """Return files that are, or are of data files, at some locations; others than vectors stay."""
    wanted = pa.array(sorted(places), pa.string())
    return {
        spec_id: one.filter(
            pc.or_(pc.is_in(one[column], value_set=wanted), pc.is_null(one[column]))
        )
        for spec_id, one in files.items()
    }
