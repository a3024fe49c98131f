"""The commits of a branch, with the files that each added and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.iceberg.manifest_list import read_manifest_list
from rowlake.iceberg.manifest_reader import read_manifests
from rowlake.model.files import Status
from rowlake.model.format import FileAction, LandedCommit

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
    handle: IcebergHandle, branch: str, start: int | None
) -> list[LandedCommit] | None:
    """Return the commits after snapshot `start`, oldest first; None where history broke off.

    It breaks off when the starting snapshot is no ancestor of the head any more: the branch was
    rolled back or replaced, or snapshots in between expired.
    """
    since: list[SnapshotInfo] = []
    before = handle.head_of(branch)
    for snapshot in handle.ancestors(before):
        if snapshot.snapshot_id == start:
            break
        since.append(snapshot)
        before = snapshot.parent_id
    if before != start:
        return None
    return [landed_commit(handle, snapshot, branch) for snapshot in reversed(since)]


def landed_commit(handle: IcebergHandle, snapshot: SnapshotInfo, branch: str) -> LandedCommit:
    """Return one snapshot as a commit; entries are read with the branch's view."""

    def read(action: FileAction) -> dict[int, pa.Table]:
        return _files(snapshot, handle.view(ref=branch), handle.storage, action)

    return LandedCommit(snapshot, read)


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
