"""Cherry-pick and publish: the change of one snapshot, brought onto a branch.

Comes in: a table handle and the snapshot (or its write-audit-publish id). Goes out: the handle
after the commit and a `Result`. An append is applied again on whatever the branch holds; any other
change only where its parent is still the head, since nothing else is sure to mean the same. A batch
of a stream keeps its mark, and is skipped where the branch holds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.commit.metadata import commit_metadata
from rowlake.commit.outcome import commit_or_raise
from rowlake.errors import InvalidStatementError, shown
from rowlake.model.app_batch import batch_of
from rowlake.model.change import Change, Operation
from rowlake.model.files import WRITTEN_FILES
from rowlake.model.format import FileAction
from rowlake.model.metadata_change import MoveRef
from rowlake.model.result import Result
from rowlake.model.values import encode_partitions

if TYPE_CHECKING:
    from rowlake.model.format import Payload
    from rowlake.model.handle import TableHandle
    from rowlake.model.view import SnapshotInfo

WAP_ID = "wap.id"
PUBLISHED_WAP_ID = "published-wap-id"
SOURCE_SNAPSHOT_ID = "source-snapshot-id"


def publish(handle: TableHandle, wap_id: str, branch: str) -> tuple[TableHandle, Result]:
    """Cherry-pick the snapshot that was staged under a write-audit-publish id."""
    staged = [
        snapshot.snapshot_id
        for snapshot in handle.snapshots
        if snapshot.summary.get(WAP_ID) == wap_id
    ]
    if not staged:
        raise InvalidStatementError(f"Table {handle.name} has no snapshot staged as {wap_id}.")
    if len(staged) > 1:
        raise InvalidStatementError(
            f"Table {handle.name} has {len(staged)} snapshots staged as {wap_id}: "
            f"{shown(staged)}. Cherry-pick the one that you mean."
        )
    return cherry_pick(handle, staged[0], branch)


def cherry_pick(handle: TableHandle, snapshot_id: int, branch: str) -> tuple[TableHandle, Result]:
    """Bring the change of one snapshot onto a branch."""
    snapshot = handle.snapshot(snapshot_id)
    if snapshot is None:
        raise InvalidStatementError(f"Table {handle.name} has no snapshot {snapshot_id}.")
    head = handle.head_of(branch)
    _validate_not_applied(handle, snapshot, head)
    if snapshot.parent_id == head:
        moved = commit_metadata(
            handle, "cherry-pick", lambda newest: _forward(newest, snapshot, branch)
        )
        if moved.head_of(branch) == snapshot_id:
            return moved, Result("cherry-pick", snapshot_id=snapshot_id)
        return cherry_pick(moved, snapshot_id, branch)
    if snapshot.operation != Operation.APPEND.value:
        raise InvalidStatementError(
            f"Cannot cherry-pick snapshot {snapshot_id} ({snapshot.operation}) onto {branch} of "
            f"{handle.name}: only appends can be applied to another state of the table."
        )
    return _append_again(handle, snapshot, branch)


def _forward(newest: TableHandle, snapshot: SnapshotInfo, branch: str) -> Payload | None:
    """Move the branch to the snapshot, unless another commit came between."""
    if newest.head_of(branch) != snapshot.parent_id:
        return None
    return newest.format.alter(newest, MoveRef(branch, snapshot.snapshot_id))


def _validate_not_applied(handle: TableHandle, snapshot: SnapshotInfo, head: int | None) -> None:
    ancestors = list(handle.ancestors(head))
    if snapshot in ancestors:
        raise InvalidStatementError(
            f"Snapshot {snapshot.snapshot_id} is in the history of the branch already."
        )
    wap_id = snapshot.summary.get(WAP_ID)
    for ancestor in ancestors:
        summary = ancestor.summary
        picked = summary.get(SOURCE_SNAPSHOT_ID) == str(snapshot.snapshot_id)
        published = wap_id is not None and wap_id in (
            summary.get(WAP_ID),
            summary.get(PUBLISHED_WAP_ID),
        )
        if picked or published:
            raise InvalidStatementError(
                f"The change of snapshot {snapshot.snapshot_id} was published already, "
                f"as snapshot {ancestor.snapshot_id}."
            )


def _append_again(
    handle: TableHandle, snapshot: SnapshotInfo, branch: str
) -> tuple[TableHandle, Result]:
    storage = handle.storage
    landed = handle.format.commit_of(handle, snapshot.snapshot_id).read(FileAction.ADDED_DATA)
    added = pa.concat_tables(
        [WRITTEN_FILES.empty_table(), *map(written_from_entries, landed.values())]
    )
    extra = {SOURCE_SNAPSHOT_ID: str(snapshot.snapshot_id)}
    if WAP_ID in snapshot.summary:
        extra[PUBLISHED_WAP_ID] = snapshot.summary[WAP_ID]
    batch = batch_of(snapshot.summary)
    change = Change(
        Operation.APPEND, added_data=added, branch=branch, properties=extra, app_batch=batch
    )
    after, committed = commit_or_raise(handle, change, storage, "cherry-pick", keep_files=True)
    if committed.skipped:
        return after, Result("cherry-pick", skipped=True)
    rows = int(pc.sum(added["record_count"]).as_py() or 0)
    result = Result(
        "cherry-pick",
        snapshot_id=committed.snapshot_id,
        rows_inserted=rows,
        data_files_added=added.num_rows,
        retries=committed.retries,
    )
    return after, result


def written_from_entries(entries: pa.Table) -> pa.Table:
    """Return entries of a manifest as files to add again; row ids are assigned again."""
    partition = entries["partition"].combine_chunks()
    columns = {name: entries[name] for name in WRITTEN_FILES.names}
    columns["partition"] = encode_partitions(partition)
    columns["first_row_id"] = pa.nulls(entries.num_rows, pa.int64())
    return pa.table([columns[name] for name in WRITTEN_FILES.names], schema=WRITTEN_FILES)
