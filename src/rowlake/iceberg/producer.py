"""A change becomes a snapshot: manifests, the manifest list, the updates for the catalog.

Comes in: a `Change` whose files are written, and the table at the head of the branch. Goes out:
`Produced`, ready to be committed. What does not depend on the head (the manifests of added files)
is written once by `prepare` and reused by every attempt; `produce` does the rest for one head.
The snapshot id stays the same over all attempts, so that an unknown outcome can be looked up.
"""

from __future__ import annotations

import getpass
import json
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table.snapshots import Operation as IcebergOperation
from pyiceberg.table.snapshots import Snapshot, Summary
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from rowlake.iceberg.manifest_list import (
    ManifestListHeader,
    has_live_files,
    read_manifest_list,
    write_manifest_list,
)
from rowlake.iceberg.manifest_merge import merge_manifests, merge_policy
from rowlake.iceberg.manifest_set import (
    DATA_MANIFEST,
    DELETE_MANIFEST,
    ManifestSet,
    is_data,
    no_summary_rows,
    removed_by_location,
    removed_deletes_marker,
    summary_rows,
)
from rowlake.iceberg.manifest_writer import ManifestHeader, manifest_codec
from rowlake.iceberg.metadata import view_of
from rowlake.iceberg.metadata_files import apply_updates
from rowlake.iceberg.refs import NOTHING
from rowlake.iceberg.summary import summary_of
from rowlake.model.app_batch import LandedBatch, with_mark
from rowlake.model.files import MANIFESTS
from rowlake.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from pyiceberg.table.metadata import TableMetadata

    from rowlake.catalog.handle import IcebergHandle
    from rowlake.iceberg.refs import Updates
    from rowlake.model.change import Change
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage


@dataclass(frozen=True)
class Prepared:
    """What of a change does not depend on the head: the manifests of the files that it adds.

    `untouched` grows with each attempt: manifests that were found to hold nothing of what the
    change removes, by what that is. Manifests never change, so the next attempt looks only at
    those that came since: whoever loses to many small commits must not be slower than they are.
    """

    snapshot_id: int
    data_manifests: pa.Table
    delete_manifests: pa.Table
    added: pa.Table
    written: tuple[str, ...]
    untouched: dict[Hashable, set[str]] = field(default_factory=dict, compare=False)

    @property
    def token(self) -> int:
        """What the commit is looked up by: the snapshot id, the same over all attempts."""
        return self.snapshot_id


@dataclass(frozen=True)
class Produced:
    """One attempt: what to commit, and which files would be stray if it does not land.

    `unused` are manifests that were merged into others: stray when it does land.
    """

    snapshot: Snapshot
    payload: Updates
    written: tuple[str, ...]
    missing: tuple[str, ...]
    unused: tuple[str, ...] = ()


def new_manifest_set(
    handle: IcebergHandle, view: TableView, snapshot_id: int, storage: Storage
) -> ManifestSet:
    """Return a builder of manifests for a snapshot on this table."""
    return ManifestSet(
        view=view,
        snapshot_id=snapshot_id,
        storage=storage,
        header_for=_header_for(handle.metadata, snapshot_id),
        target_size_in_bytes=merge_policy(view.properties).target_size_in_bytes,
    )


def _header_for(metadata: TableMetadata, snapshot_id: int) -> Callable[[int, int], ManifestHeader]:
    specs = {spec.spec_id: spec for spec in metadata.partition_specs}
    schema = metadata.schema()

    def header(spec_id: int, content: int) -> ManifestHeader:
        return ManifestHeader(
            format_version=metadata.format_version,
            content=content,
            snapshot_id=snapshot_id,
            spec_id=spec_id,
            schema_json=schema.model_dump_json(),
            spec_json=json.dumps([field.model_dump() for field in specs[spec_id].fields]),
            codec=manifest_codec(metadata.properties),
        )

    return header


def prepare(handle: IcebergHandle, change: Change, snapshot_id: int, storage: Storage) -> Prepared:
    """Write the manifests of the files that a change adds."""
    manifests = new_manifest_set(handle, view_of(handle), snapshot_id, storage)
    with _removing(manifests):
        data = manifests.add(change.added_data, DATA_MANIFEST, change.data_sequence_number)
        deletes = _add_deletes(manifests, change)
    added = pa.concat_tables([summary_rows(change.added_data), summary_rows(change.added_deletes)])
    return Prepared(snapshot_id, data, deletes, added, tuple(manifests.written))


def prepare_again(
    handle: IcebergHandle, before: Change, change: Change, prepared: Prepared, storage: Storage
) -> tuple[Prepared, tuple[str, ...]]:
    """Write the manifests again of what a rebase changed; return those that are stray now.

    Manifests of data files are reused where only delete files became others.
    """
    if change.added_data is not before.added_data:
        return prepare(handle, change, prepared.snapshot_id, storage), prepared.written
    if change.added_deletes is before.added_deletes:
        return prepared, ()
    manifests = new_manifest_set(handle, view_of(handle), prepared.snapshot_id, storage)
    with _removing(manifests):
        deletes = _add_deletes(manifests, change)
    added = pa.concat_tables([summary_rows(change.added_data), summary_rows(change.added_deletes)])
    written = (*prepared.data_manifests["location"].to_pylist(), *manifests.written)
    stray = tuple(prepared.delete_manifests["location"].to_pylist())
    again = replace(prepared, delete_manifests=deletes, added=added, written=written)
    return again, stray


def _add_deletes(manifests: ManifestSet, change: Change) -> pa.Table:
    return manifests.add(change.added_deletes, DELETE_MANIFEST, change.delete_sequence_numbers)


@contextmanager
def _removing(manifests: ManifestSet) -> Iterator[None]:
    """Remove the manifests written so far when what runs inside fails."""
    try:
        yield
    except BaseException:
        manifests.storage.delete(manifests.written)
        raise


def produce(
    handle: IcebergHandle,
    change: Change,
    prepared: Prepared,
    storage: Storage,
    *,
    attempt: int,
    first: Updates = NOTHING,
) -> Produced:
    """Make the snapshot of a change on top of the branch's head.

    `first` lands before it in the same commit: the snapshot is made for the table after it, and
    required is the head of the table before it.
    """
    holds = head_requirements(handle.metadata, change)
    handle = after_updates(handle, first)
    has_head = change.branch in handle.metadata.refs
    head = view_of(handle, ref=change.branch) if has_head else None
    view = head or view_of(handle)
    manifests = new_manifest_set(handle, view, prepared.snapshot_id, storage)
    snapshot = head.snapshot if head else None
    listed = snapshot.manifest_list if snapshot else None
    parent = read_manifest_list(listed, storage) if listed else None
    with _removing(manifests):
        composed, removed, missing = _compose(parent, change, prepared, manifests)
        location = _list_location(view, prepared.snapshot_id, attempt)
        made = _snapshot(handle.metadata, change, prepared, head, removed, location)
        manifests.written.append(location)
        made = _listed(made, composed, view.format_version, storage)
        updates = (
            *_updates(handle.metadata, change, made),
            *_property_updates(handle, change, made),
        )
    payload = ((*first[0], *updates), (*first[1], *holds))
    used = {location, *composed["location"].to_pylist()}
    unused = tuple({*prepared.written, *manifests.written} - used)
    return Produced(made, payload, tuple(manifests.written), missing, unused)


def produce_listing(
    handle: IcebergHandle,
    change: Change,
    snapshot_id: int,
    manifests: pa.Table,
    storage: Storage,
    *,
    attempt: int,
) -> Produced:
    """Make a snapshot that holds the head's files in these manifests: no file comes or goes."""
    head = view_of(handle, ref=change.branch)
    none = MANIFESTS.empty_table()
    prepared = Prepared(snapshot_id, none, none, no_summary_rows(), ())
    location = _list_location(head, snapshot_id, attempt)
    made = _snapshot(handle.metadata, change, prepared, head, no_summary_rows(), location)
    try:
        made = _listed(made, manifests, head.format_version, storage)
    except BaseException:
        storage.delete([location])
        raise
    updates = _updates(handle.metadata, change, made)
    payload = (updates, head_requirements(handle.metadata, change))
    return Produced(made, payload, (location,), ())


def after_updates(handle: IcebergHandle, payload: Updates) -> IcebergHandle:
    """Return the table as it will be once these updates have landed."""
    updates, _ = payload
    if not updates:
        return handle
    changed = apply_updates(handle.metadata, handle.metadata_location, updates)
    return replace(handle, metadata=changed)


def _listed(
    snapshot: Snapshot, manifests: pa.Table, format_version: int, storage: Storage
) -> Snapshot:
    """Write the manifest list of a snapshot; return the snapshot with its count of row ids."""
    header = ManifestListHeader(
        format_version=format_version,
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=snapshot.parent_snapshot_id,
        sequence_number=snapshot.sequence_number or 0,
        first_row_id=snapshot.first_row_id,
    )
    next_row_id = write_manifest_list(snapshot.manifest_list, manifests, header, storage)
    if snapshot.first_row_id is None:
        return snapshot
    return snapshot.model_copy(update={"added_rows": next_row_id - snapshot.first_row_id})


def _compose(
    parent: pa.Table | None, change: Change, prepared: Prepared, manifests: ManifestSet
) -> tuple[pa.Table, pa.Table, tuple[str, ...]]:
    """Return the manifest list of the new snapshot, what it removes, and what was not there."""
    before = MANIFESTS.empty_table() if parent is None else parent.filter(has_live_files(parent))
    data, deletes = before.filter(is_data(before)), before.filter(pc.invert(is_data(before)))
    removed = [no_summary_rows()]
    if change.removed_data:
        known = prepared.untouched.setdefault(change.removed_data, set())
        data, gone = manifests.remove(data, removed_by_location(change.removed_data), known)
        removed.append(gone)
    if change.removed_data or change.removed_deletes:
        goes = (change.removed_deletes, change.removed_data, _oldest_data(data, prepared))
        known = prepared.untouched.setdefault(goes, set())
        deletes, gone = manifests.remove(deletes, removed_deletes_marker(*goes), known)
        removed.append(gone)
    policy = merge_policy(manifests.view.properties)
    composed = [
        merge_manifests(pa.concat_tables([new, old]), manifests, policy, manifests.carried_entries)
        for new, old in ((prepared.data_manifests, data), (prepared.delete_manifests, deletes))
    ]
    all_removed = pa.concat_tables(removed)
    return pa.concat_tables(composed), all_removed, _missing(change, all_removed)


def _oldest_data(data: pa.Table, prepared: Prepared) -> int:
    """Return the lowest data sequence number that stays; deletes below it apply to nothing."""
    live = data.filter(has_live_files(data))
    lowest = pc.min(live["min_sequence_number"]).as_py()
    kept = pc.min(prepared.data_manifests["min_sequence_number"]).as_py()
    known = [number for number in (lowest, kept) if number is not None]
    return min(known) if known else 0


def _missing(change: Change, removed: pa.Table) -> tuple[str, ...]:
    found = set(removed["location"].to_pylist())
    gone = change.removed_data - found
    gone |= {location for location, _ in change.removed_deletes} - found
    return tuple(sorted(gone))


def _list_location(view: TableView, snapshot_id: int, attempt: int) -> str:
    folder = view.properties.get("write.metadata.path") or f"{view.location}/metadata"
    return f"{folder.rstrip('/')}/snap-{snapshot_id}-{attempt}-{uuid.uuid4()}.avro"


def _snapshot(
    metadata: TableMetadata,
    change: Change,
    prepared: Prepared,
    head: TableView | None,
    removed: pa.Table,
    location: str,
) -> Snapshot:
    parent = head.snapshot if head else None
    summary = summary_of(
        prepared.added,
        removed,
        parent=parent.summary if parent else None,
        extra=_who() | _told(change),
    )
    last_updated = max(metadata.last_updated_ms, parent.timestamp_ms if parent else 0)
    is_v3 = metadata.format_version >= 3
    return Snapshot(
        snapshot_id=prepared.snapshot_id,
        parent_snapshot_id=parent.snapshot_id if parent else None,
        sequence_number=metadata.next_sequence_number(),
        timestamp_ms=max(int(time.time() * 1000), last_updated),
        manifest_list=location,
        summary=Summary(IcebergOperation(change.operation.value), **summary),
        schema_id=metadata.current_schema_id,
        first_row_id=(getattr(metadata, "next_row_id", None) or 0) if is_v3 else None,
    )


def _told(change: Change) -> dict[str, str]:
    batch = change.app_batch.summary if change.app_batch else {}
    return {str(key): str(value) for key, value in change.properties.items()} | batch


def _property_updates(
    handle: IcebergHandle, change: Change, made: Snapshot
) -> tuple[TableUpdate, ...]:
    """Return the update of properties that a change sets, the mark of its batch among them."""
    wanted = dict(change.table_properties)
    if change.app_batch is not None:
        batch = change.app_batch
        landed = LandedBatch(
            batch.batch_id,
            made.snapshot_id,
            made.sequence_number or 0,
            made.timestamp_ms,
            batch.run_id,
        )
        wanted |= with_mark(handle, change.branch, batch, landed)
    return (SetPropertiesUpdate(updates=wanted),) if wanted else ()


def _who() -> dict[str, str]:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user id without a name
        user = "unknown"
    return {"engine-name": "rowlake", "engine-version": __version__, "rowlake.user": user}


def _updates(
    metadata: TableMetadata, change: Change, snapshot: Snapshot
) -> tuple[TableUpdate, ...]:
    add = AddSnapshotUpdate(snapshot=snapshot)
    if change.stage_only:
        return (add,)
    branch = metadata.refs.get(change.branch)
    move = SetSnapshotRefUpdate(
        ref_name=change.branch,
        type="branch",
        snapshot_id=snapshot.snapshot_id,
        max_ref_age_ms=branch.max_ref_age_ms if branch else None,
        max_snapshot_age_ms=branch.max_snapshot_age_ms if branch else None,
        min_snapshots_to_keep=branch.min_snapshots_to_keep if branch else None,
    )
    return add, move


def head_requirements(metadata: TableMetadata, change: Change) -> tuple[TableRequirement, ...]:
    """Return what must hold for the change to land: the table, and the branch's head."""
    uuid_holds = AssertTableUUID(uuid=metadata.table_uuid)
    if change.stage_only:
        return (uuid_holds,)
    ref = metadata.refs.get(change.branch)
    head_holds = AssertRefSnapshotId(
        ref=change.branch, snapshot_id=ref.snapshot_id if ref else None
    )
    return uuid_holds, head_holds
