"""Making branches and tags, also a branch of a table that has no snapshot yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.commit.metadata import commit_metadata
from rowlake.iceberg import refs
from rowlake.model.change import Change, Operation
from rowlake.storage.files import Storage
from rowlake.verbs.outcome import commit_or_raise

if TYPE_CHECKING:
    from rowlake.model.handle import TableHandle


def create_ref(
    handle: TableHandle,
    name: str,
    kind: str,
    *,
    snapshot_id: int | None = None,
    retention: refs.Retention = refs.DEFAULT_RETENTION,
    replace: bool = False,
    if_not_exists: bool = False,
) -> TableHandle:
    """Create a branch or tag at a snapshot, the current one by default."""
    if kind == "branch" and snapshot_id is None and name not in handle.refs:
        handle = begun(handle, name)
        made = handle.refs.get(name)
        if made is not None and retention == refs.DEFAULT_RETENTION:
            return handle
        if made is not None:
            snapshot_id, replace, if_not_exists = made.snapshot_id, True, False
    return commit_metadata(
        handle,
        f"create {kind} {name}",
        lambda newest: refs.create_ref(
            newest,
            name,
            kind,
            snapshot_id=snapshot_id,
            retention=retention,
            replace=replace,
            if_not_exists=if_not_exists,
        ),
    )


def begun(handle: TableHandle, branch: str) -> TableHandle:
    """Return the table with this branch, which begins at an empty snapshot where there is none.

    Java's library does the same; main stays without a snapshot. A table that has a snapshot comes
    back as it is.
    """
    metadata = handle.metadata
    if branch in metadata.refs or metadata.current_snapshot_id is not None:
        return handle
    change = Change(Operation.APPEND, branch=branch)
    storage = Storage(handle.io_properties)
    return commit_or_raise(handle, change, storage, f"create branch {branch}")[0]
