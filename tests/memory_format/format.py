"""The format protocol over a `MemoryStore`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from rowlake.commit.metadata import commit_metadata
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError, shown
from rowlake.iceberg.manifest_set import summary_rows
from rowlake.iceberg.summary import summary_of
from rowlake.model.app_batch import LandedBatch, last_landed, with_mark
from rowlake.model.files import WRITTEN_FILES
from rowlake.model.format import FileAction, LandedCommit
from rowlake.model.handle import MAIN, Ref
from rowlake.model.health import MetadataFacts
from rowlake.model.history_rows import history_rows
from rowlake.model.names import quoted
from rowlake.model.outcome import Conflict, Landed
from rowlake.model.view import SnapshotInfo, TableView
from tests.memory_format.alter import altered
from tests.memory_format.cleanup import MemoryHistory, expiry_of, ownership_of
from tests.memory_format.definition import new_table
from tests.memory_format.evolution import BUILDERS
from tests.memory_format.files import MemoryListing, apply
from tests.memory_format.handle import MemoryHandle
from tests.memory_format.inspection import metadata_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rowlake.model.change import Change
    from rowlake.model.expiry import Asked, Expiry
    from rowlake.model.format import TaskRunner
    from rowlake.model.handle import TableHandle
    from rowlake.model.metadata_change import MetadataChange, TableDefinition
    from rowlake.model.mirror import MirrorDefinition
    from rowlake.model.outcome import Outcome
    from rowlake.model.predicate import Predicate
    from rowlake.storage.files import Storage
    from rowlake.storage.ownership import Ownership
    from tests.memory_format.files import Applied
    from tests.memory_format.state import MemoryStore, MemoryTable, SnapshotFiles


@dataclass(frozen=True)
class Prepared:
    """Nothing but the token: there is nothing to write ahead."""

    token: int
    written: tuple[str, ...] = ()


@dataclass(frozen=True)
class Produced:
    """The table as it will be."""

    payload: MemoryTable
    missing: tuple[str, ...]
    written: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


@dataclass(frozen=True)
class MemoryFormat:
    """Tables in memory; the payload of a commit is the whole table after it."""

    store: MemoryStore = field(repr=False)
    name: str = "memory"

    # ------------------------------------------------------------------ looking

    def view(
        self,
        handle: TableHandle,
        *,
        snapshot_id: int | None = None,
        as_of_ms: int | None = None,
        ref: str | None = None,
    ) -> TableView:
        table = _own(handle).table
        if sum(chosen is not None for chosen in (snapshot_id, as_of_ms, ref)) > 1:
            raise InvalidStatementError("Give one of snapshot_id, as_of and ref, not several.")
        snapshot = _chosen(_own(handle), snapshot_id, as_of_ms, ref)
        is_tag = ref is not None and ref in table.refs and table.refs[ref].is_tag
        travels = snapshot_id is not None or as_of_ms is not None or is_tag
        schema_id = table.schema_id
        if travels and snapshot is not None and snapshot.schema_id is not None:
            schema_id = snapshot.schema_id
        return TableView(
            name=handle.name,
            uuid=table.uuid,
            location=table.location,
            format_version=table.flavour,
            schema=table.schemas[schema_id],
            schemas=table.schemas,
            specs=table.specs,
            default_spec_id=table.default_spec_id,
            sort_orders=table.sort_orders,
            default_sort_order_id=table.default_sort_order_id,
            properties=table.properties,
            snapshot=snapshot,
            format=self,
            can=table.can,
            io_properties=handle.io_properties,
        )

    def load_path(self, catalog: Any, identifier: tuple[str, ...], path: str) -> TableHandle:
        raise UnsupportedFeatureError(f"Tables in memory have no path {path}.")

    def refresh(self, handle: TableHandle) -> TableHandle:
        own = _own(handle)
        if own.is_staged:
            return handle
        newest = self.store.load(own.identifier)
        return handle if newest.version == own.table.version else replace(own, table=newest)

    def exists(self, handle: TableHandle) -> bool:
        return handle.identifier in self.store.tables

    def list_files(
        self,
        view: TableView,
        predicate: Predicate,
        storage: Storage,
        *,
        runner: TaskRunner | None = None,
    ) -> MemoryListing:
        if view.snapshot is None:
            return MemoryListing(None)
        found = self.store.files_of(view.uuid, view.location, view.snapshot.snapshot_id)
        return MemoryListing(found)

    def commits_since(
        self, handle: TableHandle, branch: str, start: int | None, *, end: int | None = None
    ) -> list[LandedCommit] | None:
        since, before = [], handle.head_of(branch) if end is None else end
        for snapshot in handle.ancestors(before):
            if snapshot.snapshot_id == start:
                break
            since.append(self.commit_of(handle, snapshot.snapshot_id))
            before = snapshot.parent_id
        return since[::-1] if before == start else None

    def commit_of(self, handle: TableHandle, snapshot_id: int) -> LandedCommit:
        snapshot = _known(_own(handle), snapshot_id)
        return LandedCommit(snapshot, _own(handle).table.files[snapshot_id].actions.__getitem__)

    def property_facts(self, handle: TableHandle) -> Mapping[str, str]:
        """Return the format version."""
        return {"format-version": str(handle.format_version)}

    def metadata_table(
        self,
        handle: TableHandle,
        name: str,
        *,
        snapshot_id: int | None = None,
        ref: str | None = None,
    ) -> pa.Table:
        return metadata_table(
            _own(handle), name, self.view(handle, snapshot_id=snapshot_id, ref=ref)
        )

    def last_landed(self, handle: TableHandle, branch: str, app_id: str) -> LandedBatch | None:
        return last_landed(handle, branch, app_id)

    def describe_history(self, handle: TableHandle, limit: int | None = None) -> pa.Table:
        return history_rows(list(islice(handle.ancestors(handle.current_snapshot_id), limit)))

    # ------------------------------------------------------------------ committing

    def new_token(self, handle: TableHandle) -> int:
        return self.store.next_number()

    def snapshot_id(self, handle: TableHandle, token: int) -> int:
        return token

    def outdated(self, handle: TableHandle, prepared: Prepared) -> str | None:
        return None

    def prepare(
        self, handle: TableHandle, change: Change, token: int, storage: Storage
    ) -> Prepared:
        return Prepared(token)

    def prepare_again(
        self,
        handle: TableHandle,
        before: Change,
        change: Change,
        prepared: Prepared,
        storage: Storage,
    ) -> tuple[Prepared, tuple[str, ...]]:
        return prepared, ()

    def produce(
        self,
        handle: TableHandle,
        change: Change,
        prepared: Prepared,
        storage: Storage,
        *,
        attempt: int,
        first: MemoryTable | None = None,
    ) -> Produced:
        base = (first or _own(handle).table).touched()
        number = base.last_sequence_number + 1 if base.can.sequence_numbers else 0
        applied = apply(base, change, prepared.token, number)
        snapshot = _snapshot(base, change, prepared.token, number, applied)
        table = replace(
            base,
            snapshots=(*base.snapshots, snapshot),
            files={**base.files, snapshot.snapshot_id: applied.files},
            last_sequence_number=number,
            next_row_id=applied.next_row_id,
        )
        table = replace(
            table, properties={**base.properties, **_set_properties(handle, change, snapshot)}
        )
        if not change.stage_only:
            known = base.refs.get(change.branch, Ref(snapshot.snapshot_id, "branch"))
            moved = replace(known, snapshot_id=snapshot.snapshot_id)
            table = table.with_ref(change.branch, moved)
        return Produced(table, applied.missing)

    def swap(self, handle: TableHandle, payload: MemoryTable, *, origin: object = None) -> Outcome:
        own = _own(handle)
        landed = self.store.swap(own.identifier, own.table.version, payload)
        if isinstance(landed, Conflict):
            return landed
        return Landed(replace(own, table=landed))

    def alter(self, handle: TableHandle, change: MetadataChange) -> MemoryTable | None:
        own = _own(handle)
        found = altered(change, own)
        return None if found is own.table else found.touched()

    def altered(self, handle: TableHandle, payload: MemoryTable) -> TableHandle:
        return replace(_own(handle), table=payload)

    def create(
        self,
        catalog: Any,
        identifier: tuple[str, ...],
        definition: TableDefinition,
        *,
        staged: bool = False,
    ) -> TableHandle:
        self.store.require_namespace(identifier[:-1])
        table = new_table(definition, "/".join([self.store.folder, *identifier]))
        handle = MemoryHandle(identifier, self.store, table)
        if staged:
            return handle
        outcome = self.swap(handle, table)
        if isinstance(outcome, Landed):
            return outcome.handle
        raise InvalidStatementError(f"There is a table {quoted(identifier)} already.")

    def validate_writable(self, handle: TableHandle) -> None:
        """Take every write."""

    def evolve(self, handle: TableHandle, what: str, change: Callable[[Any], None]) -> TableHandle:
        """Change the schema or the spec with a builder that knows what tests ask of it."""

        def built(newest: TableHandle) -> MemoryTable:
            builder = BUILDERS[what](_own(newest).table)
            change(builder)
            return builder.result().touched()

        return commit_metadata(handle, f"change the {what}", built)

    def file_history(
        self, handle: TableHandle, *, runner: TaskRunner | None = None
    ) -> MemoryHistory:
        return MemoryHistory(_own(handle))

    def expiry(self, handle: TableHandle, asked: Asked) -> Expiry:
        return expiry_of(_own(handle), asked)

    def ownership(
        self, handle: TableHandle, also_below: Sequence[str] | str | None = ()
    ) -> Ownership:
        return ownership_of(_own(handle), also_below)

    def metadata_facts(self, handle: TableHandle) -> MetadataFacts:
        return MetadataFacts(schemas=len(_own(handle).table.schemas))

    def name_mapping(self, handle: TableHandle) -> str:
        raise _unsupported(handle, "a name mapping")

    def to_pyiceberg(self, handle: TableHandle) -> Any:
        raise _unsupported(handle, "a PyIceberg table")

    def mirror_definition(self, handle: TableHandle) -> MirrorDefinition:
        raise _unsupported(handle, "a mirror")

    def find_mirror(self, source: TableHandle) -> TableHandle | None:
        raise _unsupported(source, "a mirror")

    def stage_mirror(self, source: TableHandle, definition: MirrorDefinition) -> TableHandle:
        raise _unsupported(source, "a mirror")

    def redefine_mirror(self, mirrored: TableHandle, definition: MirrorDefinition) -> Any:
        raise _unsupported(mirrored, "a mirror")

    def release_mirror(self, mirrored: TableHandle) -> Any:
        raise _unsupported(mirrored, "a mirror")

    def retire(self, handle: TableHandle, successor: str) -> Any:
        raise _unsupported(handle, "a mirror")


def _own(handle: TableHandle) -> MemoryHandle:
    return cast("MemoryHandle", handle)


def _unsupported(handle: TableHandle, what: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"Table {handle.name} is held in memory: it has not {what}.")


def _chosen(
    handle: MemoryHandle, snapshot_id: int | None, as_of_ms: int | None, ref: str | None
) -> SnapshotInfo | None:
    if snapshot_id is not None:
        return _known(handle, snapshot_id)
    if as_of_ms is not None:
        heads = [found for at, found in handle.table.log if at <= as_of_ms]
        if not heads:
            raise InvalidStatementError(
                f"Table {handle.name} has no snapshot as old as {as_of_ms} ms since 1970."
            )
        return _known(handle, heads[-1])
    if ref is None or ref == MAIN:
        return handle.snapshot(handle.current_snapshot_id)
    if ref not in handle.refs:
        raise InvalidStatementError(
            f"Table {handle.name} has no branch or tag {ref}. "
            f"It has: {shown(sorted(handle.refs)) or 'none'}."
        )
    return _known(handle, handle.refs[ref].snapshot_id)


def _known(handle: MemoryHandle, snapshot_id: int) -> SnapshotInfo:
    found = handle.snapshot(snapshot_id)
    if found is None:
        raise InvalidStatementError(
            f"Table {handle.name} has no snapshot {snapshot_id} (it may have expired)."
        )
    return found


def _snapshot(
    base: MemoryTable, change: Change, snapshot_id: int, number: int, applied: Applied
) -> SnapshotInfo:
    parent = base.refs.get(change.branch)
    known = {one.snapshot_id: one for one in base.snapshots}
    before = known[parent.snapshot_id].summary if parent else None
    return SnapshotInfo(
        snapshot_id=snapshot_id,
        parent_id=parent.snapshot_id if parent else None,
        sequence_number=number,
        timestamp_ms=base.last_updated_ms,
        manifest_list=None,
        operation=change.operation.value,
        summary=_summary(applied.files, before, change),
        schema_id=base.schema_id,
        first_row_id=base.next_row_id if base.can.row_ids else None,
        added_rows=applied.next_row_id - base.next_row_id if base.can.row_ids else None,
    )


def _set_properties(handle: TableHandle, change: Change, made: SnapshotInfo) -> dict[str, str]:
    batch = change.app_batch
    if batch is None:
        return dict(change.table_properties)
    landed = LandedBatch(
        batch.batch_id, made.snapshot_id, made.sequence_number, made.timestamp_ms, batch.run_id
    )
    return {**change.table_properties, **with_mark(handle, change.branch, batch, landed)}


def _summary(files: SnapshotFiles, before: Any, change: Change) -> dict[str, str]:
    added = (FileAction.ADDED_DATA, FileAction.ADDED_DELETES)
    removed = (FileAction.REMOVED_DATA, FileAction.REMOVED_DELETES)
    counted = [
        pa.concat_tables(
            [
                summary_rows(WRITTEN_FILES.empty_table()),
                *(summary_rows(one) for each in actions for one in files.actions[each].values()),
            ]
        )
        for actions in (added, removed)
    ]
    batch = change.app_batch.summary if change.app_batch else {}
    extra = {str(key): str(value) for key, value in change.properties.items()} | batch
    return summary_of(*counted, parent=before, extra=extra)
