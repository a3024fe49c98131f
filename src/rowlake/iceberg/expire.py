"""Which snapshots, refs, schemas and specs of a table expire, and the updates that remove them.

Comes in: the metadata of one moment and what a caller asks for. Goes out: an `Expiry`, and
(updates, requirements) for exactly that moment. Nothing here talks to a catalog or a storage.

Invariants: what a ref that stays points to never expires, nor does main; a snapshot that a commit
made or a ref found in the meantime makes the requirements fail, so that all is looked at again
(a REST server checks only the refs that were known; see `refs_lost`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePartitionSpecsUpdate,
    RemovePartitionStatisticsUpdate,
    RemovePropertiesUpdate,
    RemoveSchemasUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    RemoveStatisticsUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
    ValidatableTableRequirement,
)

from rowlake.catalog.generic import is_rest
from rowlake.errors import InvalidStatementError, shown
from rowlake.iceberg.metadata_files import read_metadata
from rowlake.iceberg.refs import NOTHING, ancestors
from rowlake.model.app_batch import marks_after_expiry
from rowlake.model.expiry import Asked, Expiry
from rowlake.model.properties import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.refs import SnapshotRef
    from pyiceberg.table.snapshots import Snapshot

    from rowlake.catalog.handle import IcebergHandle
    from rowlake.iceberg.refs import Updates

MAX_SNAPSHOT_AGE_MS = "history.expire.max-snapshot-age-ms"
MIN_SNAPSHOTS_TO_KEEP = "history.expire.min-snapshots-to-keep"
MAX_REF_AGE_MS = "history.expire.max-ref-age-ms"
FIVE_DAYS_MS = 5 * 24 * 60 * 60 * 1000
FOR_EVER_MS = 2**63 - 1
MAIN = "main"


def expiry_of(
    handle: IcebergHandle, asked: Asked, specs_of: Callable[[Collection[int]], Collection[int]]
) -> Expiry:
    """Return what expires; `specs_of` tells the specs that manifests of snapshots are of.

    Raises InvalidStatementError for a snapshot that was asked for, but that a ref points to.
    """
    history = _History(handle, asked)
    refs = history.kept_refs()
    history.check_asked(refs)
    kept = history.kept_ids(refs) - asked.snapshot_ids
    gone = tuple(one for one in history.snapshots if one not in kept)
    left = tuple(name for name in handle.metadata.refs if name not in refs)
    if not asked.clean_metadata:
        return Expiry(gone, left)
    spec_ids = _unused_specs(handle.metadata, kept, specs_of)
    return Expiry(gone, left, _unused_schemas(handle.metadata, kept, spec_ids), spec_ids)


class _History:
    """The snapshots and refs of a table, and how long they are kept."""

    def __init__(self, handle: IcebergHandle, asked: Asked) -> None:
        metadata = handle.metadata
        properties = metadata.properties
        self.name, self.metadata, self.asked = handle.name, metadata, asked
        self.snapshots: dict[int, Snapshot] = {one.snapshot_id: one for one in metadata.snapshots}
        self.least = asked.retain_last
        if self.least is None:
            self.least = whole_number(properties, MIN_SNAPSHOTS_TO_KEEP, 1)
        self.older_than_ms = asked.older_than_ms
        if self.older_than_ms is None:
            age_ms = whole_number(properties, MAX_SNAPSHOT_AGE_MS, FIVE_DAYS_MS)
            self.older_than_ms = asked.now_ms - age_ms
        self.ref_age_ms = whole_number(properties, MAX_REF_AGE_MS, FOR_EVER_MS)

    def kept_refs(self) -> dict[str, SnapshotRef]:
        """Return the refs that stay: main, and those that are young enough."""
        return {
            name: ref
            for name, ref in self.metadata.refs.items()
            if name == MAIN or self._is_young(ref)
        }

    def _is_young(self, ref: SnapshotRef) -> bool:
        snapshot = self.snapshots.get(ref.snapshot_id)
        if snapshot is None:
            return False
        most = self.ref_age_ms if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        return bool(self.asked.now_ms - snapshot.timestamp_ms <= most)

    def check_asked(self, refs: dict[str, SnapshotRef]) -> None:
        """Check that no ref that stays points to a snapshot that was asked for."""
        for snapshot_id in sorted(self.asked.snapshot_ids):
            names = sorted(name for name, ref in refs.items() if ref.snapshot_id == snapshot_id)
            if names:
                raise InvalidStatementError(
                    f"Cannot expire snapshot {snapshot_id} of {self.name}: {shown(names)} "
                    f"{'points' if len(names) == 1 else 'point'} to it. Drop or move what points "
                    "to it first."
                )

    def kept_ids(self, refs: dict[str, SnapshotRef]) -> set[int]:
        """Return the snapshots that stay for their refs, their branches or their age."""
        kept, known = set(), set()
        for ref in refs.values():
            kept.add(ref.snapshot_id)
            if ref.snapshot_ref_type == "branch":
                kept |= self._kept_in(ref)
                known |= {one.snapshot_id for one in ancestors(self.metadata, ref.snapshot_id)}
            else:
                known.add(ref.snapshot_id)
        # What no ref knows (rolled back, staged, of dropped branches) stays while it is young.
        return kept | {
            one.snapshot_id
            for one in self.snapshots.values()
            if one.snapshot_id not in known and one.timestamp_ms >= (self.older_than_ms or 0)
        }

    def _kept_in(self, branch: SnapshotRef) -> set[int]:
        older_than = self.older_than_ms or 0
        if branch.max_snapshot_age_ms is not None:
            older_than = self.asked.now_ms - branch.max_snapshot_age_ms
        own = branch.min_snapshots_to_keep
        least = (self.least or 0) if own is None else own
        kept: set[int] = set()
        for snapshot in ancestors(self.metadata, branch.snapshot_id):
            if len(kept) >= least and snapshot.timestamp_ms < older_than:
                break
            kept.add(snapshot.snapshot_id)
        return kept


def _unused_specs(
    metadata: TableMetadata,
    kept: set[int],
    specs_of: Callable[[Collection[int]], Collection[int]],
) -> tuple[int, ...]:
    if len(metadata.partition_specs) < 2:
        return ()
    used = {metadata.default_spec_id, *specs_of(kept)}
    return tuple(spec.spec_id for spec in metadata.partition_specs if spec.spec_id not in used)


def _unused_schemas(
    metadata: TableMetadata, kept: set[int], unused_specs: Collection[int]
) -> tuple[int, ...]:
    """Return the schemas that neither a snapshot nor a file of a snapshot needs.

    A column that was dropped may still be the source of a partition or the key of an equality
    delete; where it is, one schema that knows it stays.
    """
    snapshots = [one for one in metadata.snapshots if one.snapshot_id in kept]
    used = {metadata.current_schema_id, *(one.schema_id for one in snapshots)}
    fields = {schema.schema_id: set(schema.field_ids) for schema in metadata.schemas}
    needed = {
        part.source_id
        for spec in metadata.partition_specs
        if spec.spec_id not in unused_specs
        for part in spec.fields
    }
    if any(_may_have_equality_deletes(one) for one in snapshots):
        needed |= set().union(*fields.values())
    for schema_id in sorted(fields, reverse=True):
        known = set().union(*(fields[one] for one in used if one in fields))
        if (needed - known) & fields[schema_id]:
            used.add(schema_id)
    return tuple(schema_id for schema_id in fields if schema_id not in used)


def _may_have_equality_deletes(snapshot: Snapshot) -> bool:
    told = snapshot.summary.additional_properties if snapshot.summary else {}
    return told.get("total-equality-deletes", "0") != "0"


def expire_updates(handle: IcebergHandle, expiry: Expiry) -> Updates:
    """Return the updates that remove what expires, and what they require of the table.

    Statistics are named one by one, and on REST each snapshot, as servers of any age take them.
    """
    if not expiry:
        return NOTHING
    metadata, gone = handle.metadata, set(expiry.snapshot_ids)
    updates: list[TableUpdate] = [RemoveSnapshotRefUpdate(ref_name=name) for name in expiry.refs]
    updates += [
        RemoveStatisticsUpdate(snapshot_id=snapshot_id)
        for snapshot_id in _with_statistics(metadata.statistics, gone)
    ]
    updates += [
        RemovePartitionStatisticsUpdate(snapshot_id=snapshot_id)
        for snapshot_id in _with_statistics(metadata.partition_statistics, gone)
    ]
    if is_rest(handle.catalog):
        updates += [RemoveSnapshotsUpdate(snapshot_ids=[one]) for one in expiry.snapshot_ids]
    elif gone:
        updates.append(RemoveSnapshotsUpdate(snapshot_ids=list(expiry.snapshot_ids)))
    if expiry.spec_ids:
        updates.append(RemovePartitionSpecsUpdate(spec_ids=list(expiry.spec_ids)))
    if expiry.schema_ids:
        updates.append(RemoveSchemasUpdate(schema_ids=list(expiry.schema_ids)))
    updates += _without_lost_marks(handle, gone)
    return tuple(updates), _requirements(handle, expiry)


def _without_lost_marks(handle: IcebergHandle, gone: set[int]) -> list[TableUpdate]:
    """Return updates that forget batches of streams which rollbacks took out of history."""
    changed = marks_after_expiry(handle, gone)
    kept = {name: text for name, text in changed.items() if text is not None}
    removed = [name for name, text in changed.items() if text is None]
    found: list[TableUpdate] = [SetPropertiesUpdate(updates=kept)] if kept else []
    return [*found, RemovePropertiesUpdate(removals=removed)] if removed else found


def _with_statistics(files: Collection[object], gone: set[int]) -> list[int]:
    found = dict.fromkeys(one.snapshot_id for one in files)  # type: ignore[attr-defined]
    return [snapshot_id for snapshot_id in found if snapshot_id in gone]


def _requirements(handle: IcebergHandle, expiry: Expiry) -> tuple[TableRequirement, ...]:
    metadata = handle.metadata
    found: list[TableRequirement] = [AssertTableUUID(uuid=metadata.table_uuid)]
    found += [
        AssertRefSnapshotId(ref=name, snapshot_id=ref.snapshot_id)
        for name, ref in metadata.refs.items()
    ]
    if expiry.schema_ids:
        found.append(AssertCurrentSchemaId(current_schema_id=metadata.current_schema_id))
    if expiry.spec_ids:
        found.append(AssertDefaultSpecId(default_spec_id=metadata.default_spec_id))
    if not is_rest(handle.catalog):
        found.append(cast("TableRequirement", AssertSameHistory.of(metadata)))
    return tuple(found)


class AssertSameHistory(ValidatableTableRequirement):
    """The table has the snapshots and refs that were looked at, and no others."""

    type: Literal["assert-same-history"] = "assert-same-history"
    snapshot_ids: frozenset[int]
    refs: dict[str, int]

    @classmethod
    def of(cls, metadata: TableMetadata) -> AssertSameHistory:
        """Return the requirement that the history is still that of these metadata."""
        ids = frozenset(one.snapshot_id for one in metadata.snapshots)
        refs = {name: ref.snapshot_id for name, ref in metadata.refs.items()}
        return cls(snapshot_ids=ids, refs=refs)

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]
        """Raise CommitFailedException where the history is another one."""
        if base_metadata is None or self != AssertSameHistory.of(base_metadata):
            raise CommitFailedException("snapshots, branches or tags have changed meanwhile")


def refs_lost(before: IcebergHandle, after: IcebergHandle) -> list[str]:
    """Return refs that others made at expired snapshots in the moment before the commit landed.

    A REST server checks only the refs that it was told of, and drops such a ref with its snapshot.
    The log names the metadata that the commit was applied to; they have the ref.
    """
    log = after.metadata.metadata_log
    if not is_rest(after.catalog) or not log or log[-1].metadata_file == before.metadata_location:
        return []
    left = {one.snapshot_id for one in after.metadata.snapshots}
    landed_on = read_metadata(log[-1].metadata_file, after.storage)
    return sorted(
        name
        for name, ref in landed_on.refs.items()
        if ref.snapshot_id not in left and name not in before.metadata.refs
    )
