"""Making branches and tags, also a branch of a table that has no snapshot yet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowlake.commit.metadata import commit_metadata
from rowlake.commit.outcome import commit_or_raise
from rowlake.errors import InvalidStatementError
from rowlake.model.change import Change, Operation
from rowlake.model.metadata_change import DEFAULT_RETENTION
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from rowlake.model.handle import TableHandle
    from rowlake.model.metadata_change import CreateRef


def create_ref(handle: TableHandle, wanted: CreateRef) -> TableHandle:
    """Create or replace a branch or tag."""
    name, is_new = wanted.name, wanted.create and wanted.name not in handle.refs
    if wanted.kind == "branch" and wanted.snapshot_id is None and is_new:
        handle = begun(handle, name)
        made = handle.refs.get(name)
        if made is not None and wanted.retention == DEFAULT_RETENTION:
            return handle
        if made is not None:
            wanted = replace(
                wanted, snapshot_id=made.snapshot_id, replace=True, if_not_exists=False
            )
    return commit_metadata(handle, f"create {wanted.kind} {name}", wanted)


def begun(handle: TableHandle, branch: str) -> TableHandle:
    """Return the table with this branch, which begins at an empty snapshot where there is none.

    Java's library does the same; main stays without a snapshot. A table that has a snapshot comes
    back as it is.
    """
    if branch in handle.refs or handle.current_snapshot_id is not None:
        return handle
    change = Change(Operation.APPEND, branch=branch)
    storage = Storage(handle.io_properties)
    return commit_or_raise(handle, change, storage, f"create branch {branch}")[0]


def snapshot_id_before(handle: TableHandle, timestamp_ms: int, branch: str = "main") -> int:
    """Return the newest ancestor of a branch that is older than a time."""
    for snapshot in handle.ancestors(handle.head_of(branch)):
        if snapshot.timestamp_ms < timestamp_ms:
            return snapshot.snapshot_id
    raise InvalidStatementError(
        f"Table {handle.name} has no snapshot of {branch} older than {timestamp_ms} ms since 1970."
    )
