"""Making branches and tags, also a branch of a table that has no snapshot yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.commit.metadata import commit_metadata
from rowlake.commit.outcome import commit_or_raise
from rowlake.errors import InvalidStatementError
from rowlake.model.change import Change, Operation
from rowlake.model.metadata_change import DEFAULT_RETENTION, CreateRef, Retention
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from rowlake.model.handle import TableHandle


def create_ref(
    handle: TableHandle,
    name: str,
    kind: str,
    *,
    snapshot_id: int | None = None,
    retention: Retention = DEFAULT_RETENTION,
    replace: bool = False,
    if_not_exists: bool = False,
) -> TableHandle:
    """Create a branch or tag at a snapshot, the current one by default."""
    if kind == "branch" and snapshot_id is None and name not in handle.refs:
        handle = begun(handle, name)
        made = handle.refs.get(name)
        if made is not None and retention == DEFAULT_RETENTION:
            return handle
        if made is not None:
            snapshot_id, replace, if_not_exists = made.snapshot_id, True, False
    return commit_metadata(
        handle,
        f"create {kind} {name}",
        CreateRef(name, kind, snapshot_id, retention, replace, if_not_exists),
    )


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
