"""The files that versions of a table refer to: what VACUUM must keep.

A version within the retention consists of files that are live now, and of files that were removed
since it was made. Comes in: a table and the time from which its versions must stay readable. Goes
out: locations of data files, files of deletion vectors and change files.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.delta.checkpoints import read_removes
from rowlake.delta.durations import duration_ms
from rowlake.delta.paths import locations_of
from rowlake.delta.vectors import vector_columns
from rowlake.model.files import INLINE_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rowlake.delta.handle import DeltaHandle
    from rowlake.delta.state import LogState

FILE_RETENTION, DEFAULT_RETENTION = "delta.deletedFileRetentionDuration", "interval 1 week"
_NONE = pa.array([], pa.string())


def file_retention_ms(handle: DeltaHandle) -> int:
    """Return how long removed files are kept, as the table's property says."""
    return duration_ms(handle.properties, FILE_RETENTION, DEFAULT_RETENTION)


def retained_files(handle: DeltaHandle, since_ms: int) -> pa.ChunkedArray:
    """Return where the data and vector files are that versions since a time refer to.

    Locations may be there several times, and outside of the table's folder.
    """
    state = handle.state
    parts = [state.files, *_removed(state, since_ms)]
    # A checkpoint may have forgotten removes that are older than the table's own retention.
    covered = set(range(_first_commit(state), handle.snapshot_version + 1))
    older = [one for one in _commits_since(handle, since_ms) if one not in covered]
    parts += [handle.commit_at(version).files for version in older]
    found = [one for part in parts for one in _named(part, handle.folder)]
    return pa.chunked_array([_NONE, *found])


def touched_files(handle: DeltaHandle, after: int) -> pa.ChunkedArray:
    """Return the data and vector files that commits after a version name."""
    versions = range(after + 1, handle.snapshot_version + 1)
    parts = [handle.commit_at(version).files for version in versions]
    found = [one for part in parts for one in _named(part, handle.folder)]
    return pa.chunked_array([_NONE, *found])


def change_files(handle: DeltaHandle, since_ms: int) -> pa.ChunkedArray:
    """Return the change files (`cdc`) of the commits since a time."""
    paths: list[str] = []
    for version in _commits_since(handle, since_ms):
        paths += _change_paths(handle.storage.read(handle.log.commits[version].location))
    return pa.chunked_array([locations_of(pa.array(paths, pa.string()), handle.folder)])


def removed_files(handle: DeltaHandle) -> pa.ChunkedArray:
    """Return the data and vector files that the log knows to be removed, whenever that was."""
    parts = _removed(handle.state, None)
    found = [one for part in parts for one in _named(part, handle.folder)]
    return pa.chunked_array([_NONE, *found])


def _removed(state: LogState, since_ms: int | None) -> Iterator[pa.Table]:
    """Yield the removes since a time, those of the checkpoint and of commits after it."""
    # A recent commit that does not say when it removed a file did so now; a checkpoint long ago.
    tables = [(commit.files, since_ms or 0) for commit in state.commits]
    if state.segment.checkpoint is not None and state.checkpoint is not None:
        other = state.checkpoint.other
        old = read_removes(state.segment.checkpoint, other, state.table, state.storage)
        tables.append((old, 0))
    for files, undated_ms in tables:
        removes = files.filter(pc.invert(files["is_add"]))
        if since_ms is not None:
            times = pc.fill_null(removes["deletion_time"], undated_ms)
            removes = removes.filter(pc.greater_equal(times, since_ms))
        yield removes


def _first_commit(state: LogState) -> int:
    commits = [one.version for one in state.segment.commits if not one.is_compacted]
    return min(commits, default=state.version + 1)


def _commits_since(handle: DeltaHandle, since_ms: int) -> list[int]:
    """Return the commits that are in the log and not older; undated ones count as such."""
    commits = handle.log.commits
    return sorted(at for at, one in commits.items() if not 0 < one.modified_ms < since_ms)


def _named(files: pa.Table, folder: str) -> Iterable[pa.Array]:
    """Yield the locations of files, and of the files that their vectors are in."""
    yield from files["location"].chunks
    marked = files.filter(pc.is_valid(files["storage_type"]))
    if marked.num_rows:
        places = pa.array(vector_columns(marked, folder)["location"])
        yield places.filter(pc.invert(pc.starts_with(places, INLINE_PREFIX)))


def _change_paths(content: bytes) -> Iterator[str]:
    for line in content.split(b"\n"):
        if b'"cdc"' in line:
            action = json.loads(line).get("cdc")
            if isinstance(action, dict):
                yield str(action["path"])
