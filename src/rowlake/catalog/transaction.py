"""A catalog that holds commits back: what a transaction works on until all of it lands at once.

Comes in: the catalog under it. A table is loaded once, at the first look, and stays as it was
then, with the transaction's own commits on top. Nothing here writes to the catalog under it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn, cast

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import CommitTableResponse
from pyiceberg.table.update import AddSnapshotUpdate

from rowlake.catalog.backend import backend_of, can_commit_many
from rowlake.catalog.filesystem import FileSystemCatalog
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.iceberg.metadata_checks import validate_commit
from rowlake.iceberg.metadata_files import apply_updates, validate
from rowlake.model.names import levels_of
from rowlake.model.outcome import Conflict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.update import TableRequirement, TableUpdate

    from rowlake.catalog.handle import IcebergHandle
    from rowlake.iceberg.metadata_files import Definition
    from rowlake.model.names import Identifier

# What may be asked of the catalog under it, and what would change it at once.
_LOOKS = frozenset(
    {
        "list_namespaces",
        "list_tables",
        "list_views",
        "load_namespace_properties",
        "name",
        "namespace_exists",
        "properties",
        "table_exists",
        "table_name_from",
        "view_exists",
    }
)
_CHANGES = frozenset(
    {
        "create_namespace",
        "create_table",
        "create_table_if_not_exists",
        "create_table_transaction",
        "drop_namespace",
        "drop_table",
        "drop_view",
        "purge_table",
        "register_table",
        "rename_table",
        "update_namespace_properties",
    }
)


@dataclass(frozen=True)
class HeldCommit:
    """One commit that waits; `origin` can make it again on another head (None: nothing can)."""

    updates: tuple[TableUpdate, ...]
    requirements: tuple[TableRequirement, ...]
    origin: Any = None


@dataclass
class HeldTable:
    """A table in a transaction.

    `read` is what the transaction read, `base` what its commits will land on (the same, until a
    race is lost), `handle` the table with the commits that wait.
    """

    read: IcebergHandle
    base: IcebergHandle
    handle: IcebergHandle
    commits: list[HeldCommit] = field(default_factory=list)

    @property
    def updates(self) -> list[TableUpdate]:
        """All that the commits change, in order."""
        return [update for commit in self.commits for update in commit.updates]

    @property
    def snapshot_ids(self) -> list[int]:
        """The snapshots that the commits add, in order."""
        added = (update for update in self.updates if isinstance(update, AddSnapshotUpdate))
        return [update.snapshot.snapshot_id for update in added]

    @property
    def requirements(self) -> list[TableRequirement]:
        """What must hold of the base; all else that is required, the commits themselves made so."""
        found: list[TableRequirement] = []
        for commit in self.commits:
            for one in commit.requirements:
                if one not in found and _holds(one, self.base):
                    found.append(one)
        return found


def _holds(requirement: TableRequirement, base: IcebergHandle) -> bool:
    try:
        requirement.validate(base.metadata)
    except CommitFailedException:
        return False
    return True


class HoldingCatalog:
    """The tables of a catalog, as a transaction sees and changes them.

    Those `known` are seen as they are known; all others are loaded at the first look.
    """

    holds_commits = True

    def __init__(self, under: Catalog, known: Iterable[Any] = ()) -> None:
        self.under = under
        self.tables: dict[Identifier, HeldTable] = {}
        for handle in known:
            self._take(tuple(handle.identifier), handle)
        self.is_over = False

    def __getattr__(self, name: str) -> Any:
        if name in _CHANGES:
            return _refuse(name)
        if name in _LOOKS:
            return getattr(self.under, name)
        raise AttributeError(name)

    @property
    def changed(self) -> list[HeldTable]:
        """The tables with commits that wait, sorted by name."""
        return [self.tables[name] for name in sorted(self.tables) if self.tables[name].commits]

    def held(self, identifier: Identifier) -> HeldTable:
        """Return a table of the transaction; it is loaded at the first look."""
        if self.is_over:
            raise InvalidStatementError(
                "The transaction is over: take its tables from the lake again."
            )
        if identifier not in self.tables:
            self._take(identifier, backend_of(self.under).load(identifier, None))
        return self.tables[identifier]

    def _take(self, identifier: Identifier, found: IcebergHandle) -> None:
        self.tables[identifier] = HeldTable(found, found, self.own(found))

    def own(self, handle: IcebergHandle) -> IcebergHandle:
        """Return a table of the catalog under it as one that commits here."""
        return replace(handle, catalog=cast("Catalog", self))

    def admit(self, identifier: Identifier) -> None:
        """Check that a table may be changed beside those that are changed already."""
        others = [table.base.name for table in self.changed if table.base.identifier != identifier]
        if others and not can_commit_many(self.under):
            raise UnsupportedFeatureError(
                f"The catalog {self.under.name} cannot commit to several tables at once, and this "
                f"transaction has changed {others[0]} already. Change one table in a transaction, "
                "or use a SQL catalog or a REST catalog with multi-table commits."
            )

    def hold(self, handle: IcebergHandle, commit: HeldCommit) -> IcebergHandle:
        """Return the table after one more commit, which waits from now on."""
        self.admit(handle.identifier)
        after = after_commit(handle, commit)
        if isinstance(after, Conflict):
            raise CommitFailedException(after.cause)
        table = self.held(handle.identifier)
        table.commits.append(commit)
        table.handle = after
        return after

    # -- what PyIceberg's own table objects ask for (`Table.evolve`) ---------------------------

    def load_table(self, identifier: str | Identifier) -> Table:
        """Return a table as PyIceberg's object."""
        return self.held(levels_of(identifier)).handle.to_pyiceberg()

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        """Hold a commit of PyIceberg's."""
        validate_commit(table, updates)
        handle = self.held(table.name()).handle
        after = self.hold(handle, HeldCommit(updates, requirements))
        return CommitTableResponse(
            metadata=after.metadata, metadata_location=str(after.metadata_location)
        )

    def _delete_old_metadata(self, *_: object) -> None:
        """Keep all: nothing has landed."""


def after_commit(handle: IcebergHandle, commit: HeldCommit) -> IcebergHandle | Conflict:
    """Return a table as a commit makes it; a conflict where what it requires does not hold."""
    try:
        validate(commit.requirements, handle.metadata)
        return replace(handle, metadata=apply_updates(handle.metadata, None, commit.updates))
    except CommitFailedException as error:
        return Conflict(str(error))


def _refuse(name: str) -> NoReturn:
    raise UnsupportedFeatureError(
        f"{name.replace('_', ' ').upper()} cannot be part of a transaction: do it before or after."
    )


@dataclass(frozen=True)
class HoldingBackend:
    """The tables of a transaction as any others."""

    catalog: HoldingCatalog

    def load(self, identifier: Identifier, known: IcebergHandle | None) -> IcebergHandle:  # noqa: ARG002
        """Return the table with the transaction's own commits."""
        return self.catalog.held(identifier).handle

    def exists(self, identifier: Identifier) -> bool:
        """Return whether there is such a table."""
        return identifier in self.catalog.tables or backend_of(self.catalog.under).exists(
            identifier
        )

    def register(self, identifier: Identifier, metadata_location: str) -> None:  # noqa: ARG002
        """Not possible."""
        _refuse("register_table")

    def rename(self, identifier: Identifier, to: Identifier) -> None:  # noqa: ARG002
        """Not possible."""
        _refuse("rename_table")

    def default_location(self, identifier: Identifier) -> str | None:
        """Return where a new table of this name would go."""
        return backend_of(self.catalog.under).default_location(identifier)

    def pointers(self) -> list[str]:
        """Return the metadata files of all tables."""
        return backend_of(self.catalog.under).pointers()

    def stage(self, identifier: Identifier, definition: Definition) -> IcebergHandle:  # noqa: ARG002
        """Not possible."""
        _refuse("create_table")

    def commit(
        self,
        handle: IcebergHandle,
        updates: Sequence[TableUpdate],
        requirements: Sequence[TableRequirement],
    ) -> IcebergHandle:
        """Hold a commit back that nothing can make again."""
        return self.catalog.hold(handle, HeldCommit(tuple(updates), tuple(requirements)))


def holding(handle: IcebergHandle) -> HoldingCatalog | None:
    """Return the catalog that holds a table's commits back, None outside of transactions."""
    return handle.catalog if isinstance(handle.catalog, HoldingCatalog) else None


def admit_write(handle: IcebergHandle) -> None:
    """Refuse a write that could not be committed, before any file is written."""
    held = holding(handle)
    if held is not None:
        held.admit(handle.identifier)
    catalog = handle.catalog if held is None else held.under
    if isinstance(catalog, FileSystemCatalog) and not handle.is_staged:
        catalog.check_place(handle.identifier, handle.metadata)
