"""The Iceberg format behind `rowlake.model.format.Format`.

Views come from table metadata, files from manifests, commits from snapshots; a payload is a pair
of catalog updates and requirements, and the swap is the catalog's.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from rowlake.deferred import deferred
from rowlake.errors import UnsupportedFeatureError
from rowlake.model import app_batch
from rowlake.model.mirror import MIRROR_OF

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from rowlake.catalog import commit as catalog_commit
    from rowlake.catalog import ownership, tables, transaction
    from rowlake.catalog.handle import IcebergHandle
    from rowlake.iceberg import (
        alter,
        expire,
        file_history,
        history,
        listing,
        metadata,
        metadata_tables,
        mirror,
        name_mapping,
        producer,
        reachable,
        refs,
    )
    from rowlake.iceberg import definition as definitions
    from rowlake.iceberg import evolve as evolving
    from rowlake.iceberg.refs import Updates
    from rowlake.model.app_batch import LandedBatch
    from rowlake.model.change import Change
    from rowlake.model.expiry import Asked, Expiry
    from rowlake.model.format import FileListing, Format, LandedCommit, TaskRunner
    from rowlake.model.handle import TableHandle
    from rowlake.model.health import MetadataFacts
    from rowlake.model.metadata_change import MetadataChange, TableDefinition
    from rowlake.model.mirror import MirrorDefinition
    from rowlake.model.outcome import Outcome
    from rowlake.model.predicate import Predicate
    from rowlake.model.reachable import FileHistory
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage
    from rowlake.storage.ownership import Ownership
else:  # loaded at their first use: most statements need few of them
    catalog_commit, ownership, tables, transaction = deferred(
        "rowlake.catalog", "commit ownership tables transaction"
    )
    (
        alter,
        definitions,
        evolving,
        expire,
        file_history,
        history,
        listing,
        metadata,
        metadata_tables,
        mirror,
        name_mapping,
        reachable,
        refs,
        producer,
    ) = deferred(
        "rowlake.iceberg",
        "alter definition evolve expire file_history history listing metadata metadata_tables "
        "mirror name_mapping reachable refs producer",
    )


class IcebergFormat:
    """Apache Iceberg, versions 1 to 3. Has no state: `ICEBERG` is the one instance."""

    name = "iceberg"

    def __repr__(self) -> str:
        return "ICEBERG"

    def view(
        self,
        handle: TableHandle,
        *,
        snapshot_id: int | None = None,
        as_of_ms: int | None = None,
        ref: str | None = None,
    ) -> TableView:
        """Return the table at one snapshot."""
        return metadata.view_of(_own(handle), snapshot_id=snapshot_id, as_of_ms=as_of_ms, ref=ref)

    def load_path(
        self,
        catalog: Any,  # noqa: ARG002
        identifier: tuple[str, ...],  # noqa: ARG002
        path: str,
    ) -> TableHandle:
        """Refuse: which metadata file is current is the catalog's to say."""
        raise UnsupportedFeatureError(
            f"Cannot open {path} by its path: a catalog says which metadata of an Iceberg table "
            "are current. Name the table, or add it with register_table."
        )

    def refresh(self, handle: TableHandle) -> TableHandle:
        """Return the table as the catalog has it now."""
        return tables.refresh(_own(handle))

    def exists(self, handle: TableHandle) -> bool:
        """Return whether the catalog has a table of the handle's name."""
        return tables.table_exists(_own(handle).catalog, handle.identifier)

    def list_files(
        self,
        view: TableView,
        predicate: Predicate,
        storage: Storage,
        *,
        runner: TaskRunner | None = None,
    ) -> FileListing:
        """Return the files of a view that may hold a row of a bound predicate."""
        return listing.ManifestListing(view, predicate, storage, runner)

    def commits_since(
        self, handle: TableHandle, branch: str, start: int | None, *, end: int | None = None
    ) -> list[LandedCommit] | None:
        """Return the commits of a branch after a snapshot, oldest first."""
        return history.commits_since(_own(handle), branch, start, end)

    def last_landed(self, handle: TableHandle, branch: str, app_id: str) -> LandedBatch | None:
        """Return the newest batch of an app, by summaries of snapshots and a table property."""
        return app_batch.last_landed(handle, branch, app_id)

    def new_token(self, handle: TableHandle) -> int:
        """Return a snapshot id that the table does not have."""
        return _own(handle).metadata.new_snapshot_id()

    def snapshot_id(self, handle: TableHandle, token: int) -> int:  # noqa: ARG002
        """Return the token: snapshots are named by it."""
        return token

    def outdated(
        self,
        handle: TableHandle,  # noqa: ARG002
        prepared: producer.Prepared,  # noqa: ARG002
    ) -> str | None:
        """Return nothing: files carry field ids, and tables keep every schema and spec."""
        return None

    def prepare(
        self, handle: TableHandle, change: Change, token: int, storage: Storage
    ) -> producer.Prepared:
        """Write the manifests of the files that a change adds."""
        return producer.prepare(_own(handle), change, token, storage)

    def prepare_again(
        self,
        handle: TableHandle,
        before: Change,
        change: Change,
        prepared: producer.Prepared,
        storage: Storage,
    ) -> tuple[producer.Prepared, tuple[str, ...]]:
        """Write the manifests again of what a rebase changed."""
        return producer.prepare_again(_own(handle), before, change, prepared, storage)

    def produce(
        self,
        handle: TableHandle,
        change: Change,
        prepared: producer.Prepared,
        storage: Storage,
        *,
        attempt: int,
        first: Updates | None = None,
    ) -> producer.Produced:
        """Make the snapshot of a change on top of the branch's head."""
        return producer.produce(
            _own(handle), change, prepared, storage, attempt=attempt, first=first or refs.NOTHING
        )

    def swap(self, handle: TableHandle, payload: Updates, *, origin: object = None) -> Outcome:
        """Apply updates to the table in its catalog, all or nothing."""
        updates, requirements = payload
        return catalog_commit.commit_updates(_own(handle), updates, requirements, origin=origin)

    def alter(self, handle: TableHandle, change: MetadataChange) -> Updates | None:
        """Return the updates of a metadata change, None where there is nothing to change."""
        found = alter.updates_of(change, _own(handle))
        return found if found[0] else None

    def altered(self, handle: TableHandle, payload: Updates) -> TableHandle:
        """Return the table as it will be once updates have landed."""
        return producer.after_updates(_own(handle), payload)

    def commit_of(self, handle: TableHandle, snapshot_id: int) -> LandedCommit:
        """Return the commit that made a snapshot."""
        return history.commit_of(_own(handle), snapshot_id)

    def create(
        self,
        catalog: Any,
        identifier: tuple[str, ...],
        definition: TableDefinition,
        *,
        staged: bool = False,
    ) -> TableHandle:
        """Create an empty table; `staged` leaves the creating to the first commit."""
        make = tables.stage_table if staged else tables.create_table
        return make(catalog, identifier, definitions.new_definition(definition))

    def evolve(self, handle: TableHandle, what: str, change: Callable[[Any], None]) -> TableHandle:
        """Change the schema or the spec with PyIceberg's builders."""
        return evolving.evolve(_own(handle), what, change)

    def validate_writable(self, handle: TableHandle) -> None:
        """Refuse a write that the catalog or the transaction would not take, or a mirror."""
        if MIRROR_OF in handle.properties:
            raise UnsupportedFeatureError(
                f"Cannot write to {handle.name}: it is the mirror of a table of another format. "
                "Write to that one. Nothing was written."
            )
        transaction.admit_write(_own(handle))

    def name_mapping(self, handle: TableHandle) -> str:
        """Return the table's name mapping, else the one that its current names make."""
        return handle.properties.get(name_mapping.NAME_MAPPING) or name_mapping.default_mapping(
            _own(handle)
        )

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
        """Return one of Iceberg's metadata tables."""
        return metadata_tables.metadata_table(_own(handle), name, snapshot_id=snapshot_id, ref=ref)

    def describe_history(self, handle: TableHandle, limit: int | None = None) -> pa.Table:
        """Return the snapshots of the current line, newest first."""
        return history.describe_history(_own(handle), limit)

    def to_pyiceberg(self, handle: TableHandle) -> Any:
        """Return PyIceberg's own table object."""
        return _own(handle).to_pyiceberg()

    def file_history(self, handle: TableHandle, *, runner: TaskRunner | None = None) -> FileHistory:
        """Return the files of all snapshots, by their manifests."""
        return file_history.ManifestHistory(_own(handle), runner)

    def expiry(self, handle: TableHandle, asked: Asked) -> Expiry:
        """Return what expires by `history.expire.*`, the refs' own retention and the call."""
        own = _own(handle)
        return expire.expiry_of(own, asked, partial(reachable.spec_ids_of, own))

    def ownership(
        self, handle: TableHandle, also_below: Sequence[str] | str | None = ()
    ) -> Ownership:
        """Return what the catalog says is the table's."""
        return ownership.ownership_of(_own(handle), also_below)

    def metadata_facts(self, handle: TableHandle) -> MetadataFacts:
        """Return what the metadata file says of itself and its log."""
        return file_history.metadata_facts(_own(handle))

    def mirror_definition(self, handle: TableHandle) -> MirrorDefinition:
        """Return what a mirror in another format must know of the table."""
        return mirror.mirror_definition(_own(handle))

    def find_mirror(self, source: TableHandle) -> TableHandle | None:
        """Return the mirror whose metadata are in the folder of a table."""
        return mirror.find_mirror(source)

    def stage_mirror(self, source: TableHandle, definition: MirrorDefinition) -> TableHandle:
        """Return a new mirror of a table."""
        return mirror.stage_mirror(source, definition)

    def redefine_mirror(
        self, mirrored: TableHandle, definition: MirrorDefinition
    ) -> Updates | None:
        """Return the updates that make a mirror look like a definition."""
        return mirror.redefine(_own(mirrored), definition)

    def retire(self, handle: TableHandle, successor: str) -> Updates:
        """Return what makes a table the mirror of its successor."""
        return mirror.retire(_own(handle), successor)

    def release_mirror(self, mirrored: TableHandle) -> Updates:
        """Return the updates that make a mirror a table of its own."""
        return mirror.release(_own(mirrored))


def _own(handle: TableHandle) -> IcebergHandle:
    """Return a handle as Iceberg's own: nobody calls a format with the handle of another."""
    return cast("IcebergHandle", handle)


ICEBERG: Format = IcebergFormat()
