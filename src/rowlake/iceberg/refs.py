"""Branches and tags: the catalog updates that create, move and drop them.

Each function returns (updates, requirements) for one state of the metadata; wrong names and
impossible moves are `InvalidStatementError`. Nothing here talks to a catalog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from rowlake.errors import CorruptTableError, InvalidStatementError, shown
from rowlake.model.metadata_change import DEFAULT_RETENTION, CreateRef, Retention

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.refs import SnapshotRef
    from pyiceberg.table.snapshots import Snapshot

    from rowlake.catalog.handle import IcebergHandle

Updates = tuple[tuple[TableUpdate, ...], tuple[TableRequirement, ...]]
NOTHING: Updates = ((), ())


def ref_snapshot_id(metadata: TableMetadata, ref: str) -> int | None:
    """Return the snapshot that a branch or tag points to, None where there is none."""
    found = metadata.refs.get(ref)
    return found.snapshot_id if found else None


def ancestors(metadata: TableMetadata, snapshot_id: int | None) -> Iterator[Snapshot]:
    """Yield a snapshot and its ancestors, newest first, as far as they are kept.

    The one way to walk history: raises CorruptTableError where a snapshot is its own ancestor.
    """
    snapshots = {one.snapshot_id: one for one in metadata.snapshots}
    seen: set[int] = set()
    while snapshot_id is not None and (found := snapshots.get(snapshot_id)) is not None:
        if snapshot_id in seen:
            raise CorruptTableError(
                metadata.location,
                f"snapshot {snapshot_id} is its own ancestor",
                advice="Register an older metadata file of the table, from before the damage.",
            )
        seen.add(snapshot_id)
        yield found
        snapshot_id = found.parent_snapshot_id


def ancestor_ids(metadata: TableMetadata, snapshot_id: int | None) -> list[int]:
    """Return the ids of a snapshot and its ancestors, newest first, as far as they are kept."""
    return [found.snapshot_id for found in ancestors(metadata, snapshot_id)]


def create_ref(handle: IcebergHandle, wanted: CreateRef) -> Updates:
    """Create or replace a branch or a tag."""
    metadata, name, kind = handle.metadata, wanted.name, wanted.kind
    existing = metadata.refs.get(name)
    if existing is not None and wanted.if_not_exists:
        return NOTHING
    if existing is None and not wanted.create:
        raise InvalidStatementError(f"Table {handle.name} has no {kind} {name}.")
    if existing is not None and not wanted.replace:
        raise InvalidStatementError(f"Table {handle.name} has a branch or tag {name} already.")
    if existing is not None:
        _validate_kind(handle, name, kind)
    _check_retention(kind, wanted.retention)
    target = wanted.snapshot_id
    target = metadata.current_snapshot_id if target is None else target
    if target is None:
        raise InvalidStatementError(
            f"Table {handle.name} has no snapshot yet: write to it before making a {kind}."
        )
    return _set_ref(handle, name, kind, target, _kept(existing, wanted.retention))


def _validate_kind(handle: IcebergHandle, name: str, kind: str) -> None:
    found = handle.metadata.refs[name].snapshot_ref_type
    if found != kind:
        raise InvalidStatementError(f"{name} is a {found} of {handle.name}, not a {kind}.")


def _check_retention(kind: str, retention: Retention) -> None:
    given = {key: value for key, value in vars(retention).items() if value is not None}
    if kind == "tag" and set(given) - {"max_ref_age_ms"}:
        raise InvalidStatementError("A tag keeps one snapshot: only its max_ref_age_ms can be set.")
    for key, value in given.items():
        if value <= 0:
            raise InvalidStatementError(f"{key} must be more than 0, not {value}.")


def _kept(existing: SnapshotRef | None, retention: Retention = DEFAULT_RETENTION) -> Retention:
    """Return what a ref keeps when it is set again: what it had, unless told otherwise."""
    if existing is None:
        return retention
    before = {key: getattr(existing, key) for key in vars(retention)}
    given = {key: value for key, value in vars(retention).items() if value is not None}
    return Retention(**{**before, **given})


def drop_ref(
    handle: IcebergHandle, name: str, *, if_exists: bool = False, kind: str | None = None
) -> Updates:
    """Drop a branch or tag, which must be of the kind given; main stays."""
    metadata = handle.metadata
    if name not in metadata.refs:
        if if_exists:
            return NOTHING
        raise _no_ref(handle, name)
    if kind is not None:
        _validate_kind(handle, name, kind)
    if name == "main":
        raise InvalidStatementError("The branch main cannot be dropped.")
    holds = _holds(metadata, name)
    return (RemoveSnapshotRefUpdate(ref_name=name),), holds


def move_ref(handle: IcebergHandle, name: str, snapshot_id: int) -> Updates:
    """Point a branch to another snapshot (`set_current_snapshot`); keeps its retention."""
    metadata = handle.metadata
    _known(handle, snapshot_id)
    existing = metadata.refs.get(name)
    if existing is not None and existing.snapshot_ref_type == "tag":
        raise InvalidStatementError(f"{name} is a tag of {handle.name}; tags do not move.")
    return _set_ref(handle, name, "branch", snapshot_id, _kept(existing))


def rollback(handle: IcebergHandle, snapshot_id: int, branch: str = "main") -> Updates:
    """Move a branch back to one of its ancestors."""
    _known(handle, snapshot_id)
    head = ref_snapshot_id(handle.metadata, branch)
    if head is None and branch != "main":
        raise _no_ref(handle, branch)
    if snapshot_id not in ancestor_ids(handle.metadata, head):
        raise InvalidStatementError(
            f"Snapshot {snapshot_id} is no ancestor of {branch} of {handle.name}; a rollback goes "
            "back in a branch's own history. Use set_current_snapshot to jump to it."
        )
    return move_ref(handle, branch, snapshot_id)


def fast_forward(handle: IcebergHandle, branch: str, to: str) -> Updates:
    """Move a branch to the head of another one that it is an ancestor of."""
    metadata = handle.metadata
    target = ref_snapshot_id(metadata, to)
    if target is None:
        raise _no_ref(handle, to)
    head = ref_snapshot_id(metadata, branch)
    if head == target:
        return NOTHING
    if head is not None and head not in ancestor_ids(metadata, target):
        raise InvalidStatementError(
            f"Cannot fast-forward {branch} of {handle.name} to {to}: {branch} has commits that "
            f"{to} does not have. Use cherry_pick to bring single snapshots over."
        )
    return move_ref(handle, branch, target)


def _no_ref(handle: IcebergHandle, name: str) -> InvalidStatementError:
    return InvalidStatementError(
        f"Table {handle.name} has no branch or tag {name}. It has: "
        f"{shown(sorted(handle.metadata.refs)) or 'none'}."
    )


def _known(handle: IcebergHandle, snapshot_id: int) -> None:
    if handle.metadata.snapshot_by_id(snapshot_id) is None:
        raise InvalidStatementError(
            f"Table {handle.name} has no snapshot {snapshot_id}. "
            f"List them with: rowlake snapshots {handle.name}."
        )


def _holds(metadata: TableMetadata, name: str) -> tuple[TableRequirement, ...]:
    return (
        AssertTableUUID(uuid=metadata.table_uuid),
        AssertRefSnapshotId(ref=name, snapshot_id=ref_snapshot_id(metadata, name)),
    )


def _set_ref(
    handle: IcebergHandle, name: str, kind: str, snapshot_id: int, retention: Retention
) -> Updates:
    _known(handle, snapshot_id)
    update = SetSnapshotRefUpdate(
        ref_name=name,
        type=kind,
        snapshot_id=snapshot_id,
        max_ref_age_ms=retention.max_ref_age_ms,
        max_snapshot_age_ms=retention.max_snapshot_age_ms,
        min_snapshots_to_keep=retention.min_snapshots_to_keep,
    )
    return (update,), _holds(handle.metadata, name)
