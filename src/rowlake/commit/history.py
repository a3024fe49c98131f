"""What landed on a branch since an operation read it.

Comes in: a table handle and the snapshot that the operation started from. Goes out: tables of the
files that the snapshots in between added or removed, with the snapshot that did it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.iceberg.manifest_list import read_manifest_list
from rowlake.iceberg.manifest_reader import read_manifests
from rowlake.iceberg.metadata import snapshot_info
from rowlake.iceberg.refs import ancestors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.catalog.handle import TableHandle
    from rowlake.model.files import Status
    from rowlake.model.view import SnapshotInfo, TableView
    from rowlake.storage.files import Storage


@dataclass(frozen=True)
class Landed:
    """The files that one snapshot added or removed; all of one spec."""

    snapshot: SnapshotInfo
    spec_id: int
    entries: pa.Table


def snapshots_since(
    handle: TableHandle, branch: str, starting_snapshot_id: int | None
) -> list[SnapshotInfo] | None:
    """Return the snapshots after the starting one, oldest first; None where history broke off.

    It breaks off when the starting snapshot is no ancestor of the head any more: the branch was
    rolled back or replaced, or snapshots in between expired.
    """
    metadata = handle.metadata
    ref = metadata.refs.get(branch)
    since: list[SnapshotInfo] = []
    before = ref.snapshot_id if ref else None
    for snapshot in ancestors(metadata, before):
        if snapshot.snapshot_id == starting_snapshot_id:
            break
        since.append(snapshot_info(snapshot))
        before = snapshot.parent_snapshot_id
    return since[::-1] if before == starting_snapshot_id else None


def files_landed(
    view: TableView,
    snapshots: list[SnapshotInfo],
    storage: Storage,
    *,
    content: int,
    status: Status,
    operations: frozenset[str],
) -> Iterator[Landed]:
    """Yield the files that these snapshots added or removed (by status).

    `content` is the manifests': 0 data, 1 deletes. Snapshots of other operations are passed over.
    """
    for snapshot in snapshots:
        if snapshot.operation not in operations or snapshot.manifest_list is None:
            continue
        manifests = read_manifest_list(snapshot.manifest_list, storage)
        own = pc.and_(
            pc.equal(manifests["content"], content),
            pc.equal(manifests["added_snapshot_id"], snapshot.snapshot_id),
        )
        by_spec = read_manifests(manifests.filter(own), view, storage, live_only=False)
        for spec_id, entries in by_spec.items():
            mask = pc.and_(
                pc.equal(entries["status"], int(status)),
                pc.equal(entries["snapshot_id"], snapshot.snapshot_id),
            )
            landed = entries.filter(mask)
            if landed.num_rows:
                yield Landed(snapshot, spec_id, landed)
