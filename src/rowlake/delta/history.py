"""Versions as snapshots, and commits with the files that each added and removed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.delta.listing import SPEC_ID, FileRows
from rowlake.delta.row_changes import row_changes
from rowlake.delta.state import file_keys
from rowlake.model.files import Status
from rowlake.model.format import FileAction, LandedCommit
from rowlake.model.view import SnapshotInfo

if TYPE_CHECKING:
    from rowlake.delta.commits import Commit
    from rowlake.delta.handle import DeltaHandle
    from rowlake.delta.view import DeltaView
    from rowlake.model.format import RowChanges
    from rowlake.model.view import TableView

REPLACE, APPEND, DELETE, OVERWRITE = "replace", "append", "delete", "overwrite"
# What is counted of files: a filter of all their columns would cost more than reading the commit.
_COUNTED = ["location", "is_add", "data_change", "size"]


def snapshot_of(commit: Commit, timestamp_ms: int) -> SnapshotInfo:
    """Return a version as a snapshot; the version is its id and its sequence number."""
    version = commit.version
    return SnapshotInfo(
        snapshot_id=version,
        parent_id=version - 1 if version else None,
        sequence_number=version,
        timestamp_ms=timestamp_ms,
        manifest_list=None,
        operation=operation_of(commit),
        summary=summary_of(commit),
        schema_id=0,
    )


def operation_of(commit: Commit) -> str:
    """Return what a commit did in neutral words.

    Commits that change no rows are `replace`: of files by others (`dataChange` is false), and of
    metadata alone. A file that gets another vector is none that comes: rows of it go.
    """
    files = commit.files.select(_COUNTED)
    changing = files.filter(files["data_change"])
    added = changing.filter(changing["is_add"])
    removed = changing.filter(pc.invert(changing["is_add"]))
    adds, removes = _without_others(added, removed) > 0, removed.num_rows > 0
    if adds and removes:
        return OVERWRITE
    if adds:
        return APPEND
    return DELETE if removes else REPLACE


def summary_of(commit: Commit) -> dict[str, str]:
    """Return the counts of a commit under Iceberg's names, and what commitInfo says."""
    files = commit.files.select(_COUNTED)
    added, removed = files.filter(files["is_add"]), files.filter(pc.invert(files["is_add"]))
    info = commit.other.commit_info or {}
    found = {
        "added-data-files": str(_without_others(added, removed)),
        "deleted-data-files": str(_without_others(removed, added)),
        "added-files-size": str(pc.sum(added["size"]).as_py() or 0),
        "removed-files-size": str(pc.sum(removed["size"]).as_py() or 0),
        "delta.operation": str(info.get("operation", "")),
    }
    for key, name in (("engineInfo", "engine-info"), ("userMetadata", "delta.user-metadata")):
        if info.get(key):
            found[name] = str(info[key])
    metrics = info.get("operationMetrics")
    if isinstance(metrics, dict):
        found |= {f"delta.metrics.{key}": str(value) for key, value in metrics.items()}
        if "numDeletedRows" in metrics:
            found["deleted-records"] = str(metrics["numDeletedRows"])
    tags = info.get("tags")
    if isinstance(tags, dict):
        found |= {str(key): str(value) for key, value in tags.items()}
    return found


def _without_others(files: pa.Table, others: pa.Table) -> int:
    """Return how many data files are only on this side: others got another vector, no more."""
    if not others.num_rows or not files.num_rows:
        return int(files.num_rows)
    return int(pc.sum(_not_in(files, others)).as_py() or 0)


def _not_in(files: pa.Table, others: pa.Table) -> pa.Array:
    return pc.invert(pc.is_in(files["location"], value_set=others["location"]))


def commits_since(
    handle: DeltaHandle, start: int | None, end: int | None = None
) -> list[LandedCommit] | None:
    """Return the commits after a version, oldest first; None where the log no longer has them."""
    first = 0 if start is None else start + 1
    head = handle.snapshot_version if end is None else end
    versions = range(first, head + 1)
    if start is not None and start > head:
        return None
    if any(version not in handle.log.commits for version in versions):
        return None
    return [commit_of(handle, version) for version in versions]


def commit_of(handle: DeltaHandle, version: int) -> LandedCommit:
    """Return the commit that made a version."""
    commit = handle.commit_at(version)
    snapshot = snapshot_of(commit, handle.times.of_commit(commit))
    return LandedCommit(
        snapshot, partial(_files, handle, commit), partial(_changes, handle, commit)
    )


def _files(handle: DeltaHandle, commit: Commit, action: FileAction) -> dict[int, pa.Table]:
    """Return the files of a commit that an action was done to.

    A file that is removed with one vector and added with another stays: its vector is replaced.
    """
    files = commit.files
    added, removed = files.filter(files["is_add"]), files.filter(pc.invert(files["is_add"]))
    rows = partial(_rows, handle, commit.version)
    if action is FileAction.ADDED_DATA:
        found = rows(added.filter(_not_in(added, removed)), Status.ADDED).data(None, _ids(handle))
    elif action is FileAction.REMOVED_DATA:
        gone = removed.filter(_not_in(removed, added))
        found = rows(gone, Status.DELETED).data(None, _ids(handle))
    elif action is FileAction.ADDED_DELETES:
        found = rows(_others(added, removed), Status.ADDED).deletes()
    else:
        found = rows(_others(removed, added), Status.DELETED).deletes()
    return {SPEC_ID: found} if found.num_rows else {}


def _changes(handle: DeltaHandle, commit: Commit, view: TableView) -> RowChanges:
    return row_changes(handle, commit, cast("DeltaView", view).columns)


def _others(files: pa.Table, known: pa.Table) -> pa.Table:
    """Return the files that are not on the other side with the same vector."""
    return files.filter(pc.invert(pc.is_in(file_keys(files), value_set=file_keys(known))))


def _rows(handle: DeltaHandle, version: int, files: pa.Table, status: Status) -> FileRows:
    return FileRows(files, handle.state, handle.columns_of(handle.state), status, version)


def _ids(handle: DeltaHandle) -> tuple[int, ...]:
    return tuple(handle.columns_of(handle.state).physical)
