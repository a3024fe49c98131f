"""The commits of a branch, with the files that each added and removed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import InternalError
from rowlake.iceberg.manifest_list import read_manifest_list
from rowlake.iceberg.manifest_reader import read_manifests
from rowlake.model.files import Status
from rowlake.model.format import FileAction, LandedCommit
from rowlake.model.history_rows import history_rows

if TYPE_CHECKING:
    from rowlake.catalog.handle import IcebergHandle
    from rowlake.model.view import SnapshotInfo, TableView
    from rowlake.storage.files import Storage

# What manifests hold (0 data, 1 deletes), and the status of the entries.
_ENTRIES = {
    FileAction.ADDED_DATA: (0, Status.ADDED),
    FileAction.REMOVED_DATA: (0, Status.DELETED),
    FileAction.ADDED_DELETES: (1, Status.ADDED),
    FileAction.REMOVED_DELETES: (1, Status.DELETED),
}


def commits_since(
    handle: IcebergHandle, branch: str, start: int | None, end: int | None = None
) -> list[LandedCommit] | None:
    """Return the commits after snapshot `start`, oldest first; None where history broke off.

    They reach to the head of the branch, or to the snapshot `end`. History breaks off when the
    starting snapshot is no ancestor of that any more: the branch was rolled back or replaced, or
    snapshots in between expired.
    """
    since: list[SnapshotInfo] = []
    before = handle.head_of(branch) if end is None else end
    for snapshot in handle.ancestors(before):
        if snapshot.snapshot_id == start:
            break
        since.append(snapshot)
        before = snapshot.parent_id
    if before != start:
        return None
    reader = _Reader(handle, branch, end)
    return [LandedCommit(snapshot, partial(reader.files, snapshot)) for snapshot in reversed(since)]


def describe_history(handle: IcebergHandle, limit: int | None) -> pa.Table:
    """Return the ancestors of the head, newest first, as DESCRIBE HISTORY shows them."""
    return history_rows(list(islice(handle.ancestors(handle.current_snapshot_id), limit)))


def commit_of(handle: IcebergHandle, snapshot_id: int) -> LandedCommit:
    """Return the commit that made a snapshot, on whichever branch."""
    snapshot = handle.view(snapshot_id=snapshot_id).snapshot
    if snapshot is None:
        raise InternalError(f"The view of snapshot {snapshot_id} of {handle.name} has none.")
    return LandedCommit(snapshot, partial(_Reader(handle).files, snapshot))


@dataclass(frozen=True)
class _Reader:
    """Reads the files of commits with one view, which is made when it is needed."""

    handle: IcebergHandle
    branch: str | None = None
    end: int | None = None

    @cached_property
    def view(self) -> TableView:
        if self.end is not None:
            return self.handle.view(snapshot_id=self.end)
        return self.handle.view(ref=self.branch)

    def files(self, snapshot: SnapshotInfo, action: FileAction) -> dict[int, pa.Table]:
        return _files(snapshot, self.view, self.handle.storage, action)


def _files(
    snapshot: SnapshotInfo, view: TableView, storage: Storage, action: FileAction
) -> dict[int, pa.Table]:
    if snapshot.manifest_list is None:
        return {}
    content, status = _ENTRIES[action]
    manifests = read_manifest_list(snapshot.manifest_list, storage)
    own = pc.and_(
        pc.equal(manifests["content"], content),
        pc.equal(manifests["added_snapshot_id"], snapshot.snapshot_id),
    )
    found = {}
    by_spec = read_manifests(manifests.filter(own), view, storage, live_only=False)
    for spec_id, entries in by_spec.items():
        mask = pc.and_(
            pc.equal(entries["status"], int(status)),
            pc.equal(entries["snapshot_id"], snapshot.snapshot_id),
        )
        landed = entries.filter(mask)
        if landed.num_rows:
            found[spec_id] = landed
    return found
