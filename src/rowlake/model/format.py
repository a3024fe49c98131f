"""What the rooms ask of a table format; Iceberg's answer is `rowlake.iceberg.format`.

A format is a list of immutable data files with statistics, deletes, and a history
of commits, each of which adds and removes files. Planning, validation, rebase, row-level changes
and maintenance are written once, against this protocol. What a format cannot do is said by
`Capabilities`, never by its name or version.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

    from rowlake.model.app_batch import LandedBatch
    from rowlake.model.change import Change
    from rowlake.model.expiry import Asked, Expiry
    from rowlake.model.handle import TableHandle
    from rowlake.model.health import MetadataFacts
    from rowlake.model.metadata_change import MetadataChange, TableDefinition
    from rowlake.model.mirror import MirrorDefinition
    from rowlake.model.outcome import Outcome
    from rowlake.model.predicate import Predicate
    from rowlake.model.reachable import FileHistory
    from rowlake.model.view import SnapshotInfo, TableView
    from rowlake.storage.files import Storage
    from rowlake.storage.ownership import Ownership

# Files by partition spec: one table of `files_schema` each.
FilesBySpec: TypeAlias = Mapping[int, "pa.Table"]
# What a format makes for `swap`; nobody else looks inside.
Payload: TypeAlias = Any


@dataclass(frozen=True)
class Capabilities:
    """What a table may hold, and so what an operation may write to it.

    `exact_bounds`: bounds of numbers and times are values of the file, never rounded outwards.
    `existing_files`: files that others wrote can join the table. `column_ids`: columns keep their
    field ids in all schemas of the table; else their names identify them. `snapshot_expiry`: old
    snapshots go when they are expired; without it, the log forgets them by itself, and VACUUM
    deletes the files that only they needed. `refusals`: what to say of kinds of delete files
    (`position`, `equality`, `vector`) and of the mode `merge-on-read` where a table has none.
    """

    position_deletes: bool = True
    deletion_vectors: bool = False
    equality_deletes: bool = True
    row_ids: bool = False
    sequence_numbers: bool = True
    branches: bool = True
    transforms: bool = True
    column_defaults: bool = False
    check_constraints: bool = False
    manifests: bool = False
    exact_bounds: bool = True
    existing_files: bool = True
    column_ids: bool = True
    snapshot_expiry: bool = True
    refusals: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def row_level_deletes(self) -> bool:
        """True where rows can be deleted without rewriting their data file."""
        return self.position_deletes or self.deletion_vectors


class TaskRunner(Protocol):
    """Who runs a format's tasks where a listing is too much for the driver alone.

    `rowlake.engine` is one; formats sit below it and take it as an argument.
    """

    @property
    def has_session(self) -> bool:
        """True where tasks can run without starting anything."""

    @property
    def slots(self) -> int:
        """How many tasks can run at once."""

    def run(
        self,
        kernel: Callable[[Any], Iterable[pa.RecordBatch]],
        tasks: Sequence[Any],
        output: pa.Schema,
        *,
        label: str,
    ) -> pa.Table:
        """Run the kernel on every task and return all it yields."""


class FileListing(Protocol):
    """The live files of a view that may hold a row of a predicate; read when they are asked for.

    `units` are what the format lists files in (Iceberg: manifests).
    """

    @property
    def units_considered(self) -> int:
        """How many units the view has."""

    @property
    def units_pruned(self) -> int:
        """How many of them cannot list a matching file."""

    @property
    def files_considered(self) -> int:
        """How many live data files the view has; call it after `data`."""

    @property
    def data_spec_ids(self) -> set[int]:
        """The specs that the live data files are of."""

    def data(self, columns: Iterable[str] | None = None) -> dict[int, pa.Table]:
        """Return the data files of the units kept, by spec."""

    def deletes(
        self,
        columns: Iterable[str] | None = None,
        *,
        added_by: Collection[int] | None = None,
    ) -> dict[int, pa.Table]:
        """Return the delete files of the units kept, by spec; `added_by` these snapshots only."""

    @property
    def units(self) -> pa.Table:
        """The units as `MANIFESTS`, pruned ones too; no rows where the format has none."""


class FileAction(enum.Enum):
    """What a commit does to files."""

    ADDED_DATA = "added data files"
    REMOVED_DATA = "removed data files"
    ADDED_DELETES = "added delete files"
    REMOVED_DELETES = "removed delete files"


@dataclass(frozen=True)
class RowChanges:
    """The files whose rows a commit changed, where the commit itself says all of it.

    - `removed`, `added`: data files; `kept`: those that stay with other deletes;
    - `deletes_before`, `deletes_after`: all deletes that apply to them, before and after it;
    - `images`: files of rows that changed, each with its `_change_type`. Where there are any, they
      have all changes of the commit, and nothing else of it needs to be read.
    """

    removed: FilesBySpec = field(default_factory=dict)
    added: FilesBySpec = field(default_factory=dict)
    kept: FilesBySpec = field(default_factory=dict)
    deletes_before: FilesBySpec = field(default_factory=dict)
    deletes_after: FilesBySpec = field(default_factory=dict)
    images: FilesBySpec = field(default_factory=dict)


@dataclass(frozen=True)
class LandedCommit:
    """One commit of a table's history; its files are read when they are asked for.

    `row_changes` (in the columns of a view) is for formats whose commits say what happened to
    their files' rows; of others that follows from the files of the snapshots around it.
    """

    snapshot: SnapshotInfo
    read: Callable[[FileAction], FilesBySpec] = field(repr=False)
    row_changes: Callable[[TableView], RowChanges] | None = field(default=None, repr=False)

    @property
    def changes_rows(self) -> bool:
        """False for rewrites, after which the table has the same rows in other files."""
        return self.snapshot.operation != "replace"


class Prepared(Protocol):
    """What all attempts of a commit share; `written` are the files that hold it."""

    @property
    def token(self) -> int:
        """What the commit is looked up by when its outcome is unknown."""

    @property
    def written(self) -> tuple[str, ...]:
        """The files that were written for it."""


class Produced(Protocol):
    """One attempt: what to swap in, and which files would be stray if it does not land."""

    @property
    def payload(self) -> Payload:
        """What `swap` takes."""

    @property
    def written(self) -> tuple[str, ...]:
        """Files of this attempt: stray where it does not land."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Files that the change removes and the head does not have: it must not land."""

    @property
    def unused(self) -> tuple[str, ...]:
        """Files of earlier steps that the attempt does not refer to: stray where it lands."""


class Format(Protocol):
    """A table format. Methods take handles of the format's own kind."""

    @property
    def name(self) -> str:
        """The name that users know: `iceberg`, `delta`."""

    def view(
        self,
        handle: TableHandle,
        *,
        snapshot_id: int | None = None,
        as_of_ms: int | None = None,
        ref: str | None = None,
    ) -> TableView:
        """Return the table at one snapshot: the head of main unless told otherwise."""

    def load_path(self, catalog: Any, identifier: tuple[str, ...], path: str) -> TableHandle:
        """Return the table in a folder that no catalog names; `catalog` opens its files.

        Raises TableNotFoundError where there is none, UnsupportedFeatureError for a format whose
        tables need a catalog.
        """

    def refresh(self, handle: TableHandle) -> TableHandle:
        """Return the table as it is now; the same handle where nothing changed."""

    def exists(self, handle: TableHandle) -> bool:
        """Return whether the catalog has a table of the handle's name."""

    def list_files(
        self,
        view: TableView,
        predicate: Predicate,
        storage: Storage,
        *,
        runner: TaskRunner | None = None,
    ) -> FileListing:
        """Return the files of a view that may hold a row of a bound predicate."""

    def commits_since(
        self, handle: TableHandle, branch: str, start: int | None, *, end: int | None = None
    ) -> list[LandedCommit] | None:
        """Return the commits of a branch after snapshot `start` (None: all), oldest first.

        The last one is the branch's head, or snapshot `end`, of whichever branch. None where
        history broke off: `start` is no ancestor of it (any more).
        """

    def last_landed(self, handle: TableHandle, branch: str, app_id: str) -> LandedBatch | None:
        """Return the newest batch of an app that the head of a branch holds."""

    def new_token(self, handle: TableHandle) -> int:
        """Return a token for a new commit."""

    def snapshot_id(self, handle: TableHandle, token: int) -> int:
        """Return the snapshot of the commit with a token, which made this handle."""

    def prepare(
        self, handle: TableHandle, change: Change, token: int, storage: Storage
    ) -> Prepared:
        """Write what of a change does not depend on the head."""

    def prepare_again(
        self,
        handle: TableHandle,
        before: Change,
        change: Change,
        prepared: Any,
        storage: Storage,
    ) -> tuple[Prepared, tuple[str, ...]]:
        """Prepare a change that was rebased, and return the files that it no longer needs."""

    def outdated(self, handle: TableHandle, prepared: Any) -> str | None:
        """Return why files that were written for an older definition of the table cannot land."""

    def produce(
        self,
        handle: TableHandle,
        change: Change,
        prepared: Any,
        storage: Storage,
        *,
        attempt: int,
        first: Payload | None = None,
    ) -> Produced:
        """Make one attempt on top of the branch's head; `first` lands in the same swap."""

    def swap(self, handle: TableHandle, payload: Payload, *, origin: object = None) -> Outcome:
        """Put a payload into the table, all or nothing.

        In a transaction the commit waits, and `origin` with it: what can make it again.
        """

    def alter(self, handle: TableHandle, change: MetadataChange) -> Payload | None:
        """Return the payload of a metadata change, None where there is nothing to change."""

    def altered(self, handle: TableHandle, payload: Payload) -> TableHandle:
        """Return the table as it will be once a payload of `alter` has landed."""

    def commit_of(self, handle: TableHandle, snapshot_id: int) -> LandedCommit:
        """Return the commit that made a snapshot, on whichever branch."""

    def create(
        self,
        catalog: Any,
        identifier: tuple[str, ...],
        definition: TableDefinition,
        *,
        staged: bool = False,
    ) -> TableHandle:
        """Create an empty table; `staged` leaves the creating to the first commit."""

    def evolve(self, handle: TableHandle, what: str, change: Callable[[Any], None]) -> TableHandle:
        """Change the `schema` or the partition `spec` with the format's own builder."""

    def validate_writable(self, handle: TableHandle) -> None:
        """Refuse a write that could not be committed, before any file is written."""

    def name_mapping(self, handle: TableHandle) -> str:
        """Return the mapping of names to field ids (JSON) for files that carry no ids."""

    def metadata_table(
        self,
        handle: TableHandle,
        name: str,
        *,
        snapshot_id: int | None = None,
        ref: str | None = None,
    ) -> pa.Table:
        """Return what the format tells about a table under a name (`snapshots`, `files`, …)."""

    def describe_history(self, handle: TableHandle, limit: int | None = None) -> pa.Table:
        """Return what DESCRIBE HISTORY shows: the commits of the head, newest first."""

    def property_facts(self, handle: TableHandle) -> Mapping[str, str]:
        """Return what SHOW TBLPROPERTIES tells of a table beside its properties: its versions."""

    def to_pyiceberg(self, handle: TableHandle) -> Any:
        """Return the table as PyIceberg's own object, where it is an Iceberg table."""

    def file_history(self, handle: TableHandle, *, runner: TaskRunner | None = None) -> FileHistory:
        """Return the files of all snapshots: for expiry, orphan files and erasure."""

    def expiry(self, handle: TableHandle, asked: Asked) -> Expiry:
        """Return what expires at this moment; `ExpireSnapshots` removes exactly that.

        Raises InvalidStatementError for a snapshot that was asked for, but that must be kept.
        """

    def ownership(
        self, handle: TableHandle, also_below: Sequence[str] | str | None = ()
    ) -> Ownership:
        """Return where files of the table may be deleted; below `also_below` by the owner's word.

        Raises UnsupportedFeatureError for a table that is not where its catalog says.
        """

    def metadata_facts(self, handle: TableHandle) -> MetadataFacts:
        """Return what the metadata says of its own files, for a table's health."""

    def mirror_definition(self, handle: TableHandle) -> MirrorDefinition:
        """Return what a mirror in another format must know of a table.

        Raises UnsupportedFeatureError for what only this format has.
        """

    def find_mirror(self, source: TableHandle) -> TableHandle | None:
        """Return the mirror in this format of a table of another one, None where there is none.

        Raises UnsupportedFeatureError where the folder holds a table that is no mirror of it.
        """

    def stage_mirror(self, source: TableHandle, definition: MirrorDefinition) -> TableHandle:
        """Return a new mirror of a table of another format; its first commit creates it."""

    def redefine_mirror(
        self, mirrored: TableHandle, definition: MirrorDefinition
    ) -> Payload | None:
        """Return what makes a mirror look like a definition, None where it does."""

    def release_mirror(self, mirrored: TableHandle) -> Payload:
        """Return what makes a mirror a table of its own, which can be written."""

    def retire(self, handle: TableHandle, successor: str) -> Payload:
        """Return what makes a table the mirror of the one, by its uuid, that takes its place.

        It lands only where the table has no newer commit.
        """
