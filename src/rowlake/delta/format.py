"""The Delta Lake format behind `rowlake.model.format.Format`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rowlake.deferred import deferred
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.model.expiry import Expiry
from rowlake.model.handle import MAIN
from rowlake.model.health import MetadataFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from rowlake.delta import (
        alter,
        batches,
        create,
        evolve,
        features,
        history,
        listing,
        load,
        metadata_tables,
        mirror,
        new_version,
        producer,
        writable,
    )
    from rowlake.delta import swap as swapping
    from rowlake.delta import view as views
    from rowlake.delta.handle import DeltaHandle
    from rowlake.delta.new_version import NewVersion
    from rowlake.delta.view import DeltaView
    from rowlake.model.app_batch import LandedBatch
    from rowlake.model.change import Change
    from rowlake.model.format import FileListing, Format, LandedCommit, TaskRunner
    from rowlake.model.handle import TableHandle
    from rowlake.model.metadata_change import MetadataChange, TableDefinition
    from rowlake.model.mirror import MirrorDefinition
    from rowlake.model.outcome import Outcome
    from rowlake.model.predicate import Predicate
    from rowlake.model.reachable import FileHistory
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage
    from rowlake.storage.ownership import Ownership
else:  # loaded at their first use: most statements need few of them
    alter, batches, create, evolve, features, history, listing, load, metadata_tables = deferred(
        "rowlake.delta", "alter batches create evolve features history listing load metadata_tables"
    )
    mirror, new_version, producer, swapping, views, writable = deferred(
        "rowlake.delta", "mirror new_version producer swap view writable"
    )


class DeltaFormat:
    """Delta Lake, reader versions 1 to 3. Has no state: `DELTA` is the one instance."""

    name = "delta"

    def __repr__(self) -> str:
        return "DELTA"

    def load_path(self, catalog: Any, identifier: tuple[str, ...], path: str) -> TableHandle:
        """Return the table in a folder."""
        return load.load_path(catalog, identifier, path)

    def view(
        self,
        handle: TableHandle,
        *,
        snapshot_id: int | None = None,
        as_of_ms: int | None = None,
        ref: str | None = None,
    ) -> TableView:
        """Return the table at one version."""
        return _view(_own(handle), snapshot_id, as_of_ms, ref)

    def refresh(self, handle: TableHandle) -> TableHandle:
        """Return the table at the newest version of its log."""
        return load.refresh(_own(handle))

    def exists(self, handle: TableHandle) -> bool:
        """Return whether the log is there."""
        return load.is_there(_own(handle))

    def list_files(
        self,
        view: TableView,
        predicate: Predicate,
        storage: Storage,  # noqa: ARG002  (the view has what opens its log)
        *,
        runner: TaskRunner | None = None,  # noqa: ARG002  (a log is read by columns, here)
    ) -> FileListing:
        """Return the files of a version."""
        return listing.LogListing(cast("DeltaView", view), predicate)

    def commits_since(
        self,
        handle: TableHandle,
        branch: str,  # noqa: ARG002  (there is but one)
        start: int | None,
        *,
        end: int | None = None,
    ) -> list[LandedCommit] | None:
        """Return the commits after a version, oldest first."""
        return history.commits_since(_own(handle), start, end)

    def commit_of(self, handle: TableHandle, snapshot_id: int) -> LandedCommit:
        """Return the commit that made a version."""
        return history.commit_of(_own(handle), snapshot_id)

    def last_landed(
        self,
        handle: TableHandle,
        branch: str,  # noqa: ARG002  (there is but one)
        app_id: str,
    ) -> LandedBatch | None:
        """Return the newest batch of an app, by its transaction identifier."""
        return batches.last_landed(_own(handle), app_id)

    def new_token(self, handle: TableHandle) -> int:  # noqa: ARG002
        """Return a number that no other commit has."""
        return new_version.new_token()

    def snapshot_id(self, handle: TableHandle, token: int) -> int:  # noqa: ARG002
        """Return the version that a commit made."""
        return _own(handle).snapshot_version

    def prepare(
        self,
        handle: TableHandle,
        change: Change,
        token: int,
        storage: Storage,  # noqa: ARG002
    ) -> producer.Prepared:
        """Note the definition that files were written for."""
        state = _own(handle).state
        moves = bool(change.moved_marks)
        read = producer.read_version_of(change)
        return producer.Prepared(token, state.metadata, state.protocol, (), moves, read)

    def prepare_again(
        self,
        handle: TableHandle,  # noqa: ARG002
        before: Change,  # noqa: ARG002
        change: Change,  # noqa: ARG002
        prepared: producer.Prepared,
        storage: Storage,  # noqa: ARG002
    ) -> tuple[producer.Prepared, tuple[str, ...]]:
        """Return what was prepared: nothing of it depends on the files of a change."""
        return prepared, ()

    def outdated(self, handle: TableHandle, prepared: producer.Prepared) -> str | None:
        """Return why files cannot land in the table as others have left it."""
        return producer.outdated(_own(handle), prepared)

    def produce(
        self,
        handle: TableHandle,
        change: Change,
        prepared: producer.Prepared,
        storage: Storage,  # noqa: ARG002  (nothing is written before the swap)
        *,
        attempt: int,  # noqa: ARG002
        first: NewVersion | None = None,
    ) -> producer.Produced:
        """Make the commit of a change on top of the newest version."""
        return producer.produce(_own(handle), change, prepared, first)

    def swap(
        self,
        handle: TableHandle,
        payload: NewVersion,
        *,
        origin: object = None,  # noqa: ARG002  (a log takes one commit at a time)
    ) -> Outcome:
        """Write the commit file of a version unless there is one."""
        return swapping.swap(_own(handle), payload)

    def alter(self, handle: TableHandle, change: MetadataChange) -> NewVersion | None:
        """Return the version that a metadata change makes."""
        return alter.alter(_own(handle), change)

    def altered(self, handle: TableHandle, payload: NewVersion) -> TableHandle:
        """Return the table as it will be once a version has landed."""
        return new_version.altered(_own(handle), payload)

    def create(
        self,
        catalog: Any,
        identifier: tuple[str, ...],
        definition: TableDefinition,
        *,
        staged: bool = False,
    ) -> TableHandle:
        """Create an empty table in the folder that its name or its definition says."""
        return create.create(catalog, identifier, definition, staged=staged)

    def evolve(self, handle: TableHandle, what: str, change: Callable[[Any], None]) -> TableHandle:
        """Change the schema with a builder that has the names of PyIceberg's."""
        return evolve.evolve(_own(handle), what, change)

    def validate_writable(self, handle: TableHandle) -> None:
        """Refuse a table whose writers must know or do what rowlake does not."""
        writable.validate_writable(_own(handle))

    def file_history(
        self,
        handle: TableHandle,
        *,
        runner: TaskRunner | None = None,  # noqa: ARG002
    ) -> FileHistory:
        """Refuse: files of versions that are gone are for VACUUM."""
        raise _unsupported(handle, "list of the files of all versions")

    def ownership(
        self,
        handle: TableHandle,
        also_below: Sequence[str] | str | None = (),  # noqa: ARG002
    ) -> Ownership:
        """Refuse: files of versions that are gone are for VACUUM."""
        raise _unsupported(handle, "list of the files of all versions")

    def name_mapping(self, handle: TableHandle) -> str:
        """Return the mapping of the names in files to field ids."""
        mapping = handle.view().name_mapping
        return "[]" if mapping is None else mapping.text

    def property_facts(self, handle: TableHandle) -> Mapping[str, str]:
        """Return the versions and features of the protocol, as Delta on Spark shows them."""
        return features.property_facts(_own(handle).state.protocol)

    def metadata_table(
        self,
        handle: TableHandle,
        name: str,
        *,
        snapshot_id: int | None = None,
        ref: str | None = None,
    ) -> pa.Table:
        """Return what the log tells about the table under a name."""
        return metadata_tables.metadata_table(
            _own(handle), name, lambda: _view(_own(handle), snapshot_id, None, ref)
        )

    def describe_history(self, handle: TableHandle, limit: int | None = None) -> pa.Table:
        """Return what Delta's DESCRIBE HISTORY shows."""
        return metadata_tables.history(_own(handle), limit)

    def metadata_facts(self, handle: TableHandle) -> MetadataFacts:
        """Return how long the log is."""
        return MetadataFacts(schemas=1, log_entries=len(_own(handle).log.commits))

    def expiry(self, *_: Any) -> Expiry:
        """Return nothing: versions do not expire by themselves."""
        return Expiry((), ())

    def to_pyiceberg(self, handle: TableHandle) -> Any:
        """Refuse: PyIceberg has no Delta tables."""
        raise UnsupportedFeatureError(f"{handle.name} is a Delta table: PyIceberg cannot hold it.")

    def mirror_definition(self, handle: TableHandle) -> MirrorDefinition:
        """Return what a mirror in another format must know of the table."""
        return mirror.mirror_definition(_own(handle))

    def find_mirror(self, source: TableHandle) -> TableHandle | None:
        """Return the mirror whose log is in the folder of a table."""
        return mirror.find_mirror(source)

    def stage_mirror(self, source: TableHandle, definition: MirrorDefinition) -> TableHandle:
        """Return a new mirror of a table."""
        return mirror.stage_mirror(source, definition)

    def redefine_mirror(
        self, mirrored: TableHandle, definition: MirrorDefinition
    ) -> NewVersion | None:
        """Return the version that makes a mirror look like a definition."""
        return mirror.redefine(_own(mirrored), definition)

    def retire(self, handle: TableHandle, successor: str) -> NewVersion:
        """Return what makes a table the mirror of its successor."""
        return mirror.retire(_own(handle), successor)

    def release_mirror(self, mirrored: TableHandle) -> NewVersion:
        """Return the version that makes a mirror a table of its own."""
        return mirror.release(_own(mirrored))


def _unsupported(handle: TableHandle, what: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{handle.name} is a Delta table, which has no {what}: use VACUUM."
    )


def _own(handle: TableHandle) -> DeltaHandle:
    """Return a handle as Delta's own: nobody calls a format with the handle of another."""
    return cast("DeltaHandle", handle)


def _view(
    handle: DeltaHandle, snapshot_id: int | None, as_of_ms: int | None, ref: str | None
) -> DeltaView:
    if sum(chosen is not None for chosen in (snapshot_id, as_of_ms, ref)) > 1:
        raise InvalidStatementError("Give one of snapshot_id, as_of and ref, not several.")
    if ref not in (None, MAIN):
        raise UnsupportedFeatureError(
            f"Table {handle.name} has no branch or tag {ref}: Delta tables have none. Name a "
            "version instead."
        )
    if handle.pending is not None and snapshot_id is None and as_of_ms is None:
        return views.view_of(handle, handle.pending, handle.snapshot(handle.current_snapshot_id))
    version = handle.snapshot_version if snapshot_id is None else snapshot_id
    if as_of_ms is not None:
        version = handle.times.version_as_of(as_of_ms, handle.name)
    return views.view_of(handle, handle.state_at(version), handle.need_snapshot(version))


DELTA: Format = DeltaFormat()
