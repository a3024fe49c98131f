"""SQL catalogs: the pointer to the metadata file is a row, swapped by compare-and-set.

The layout is that of PyIceberg's SqlCatalog and Java's JdbcCatalog, so all of them may commit
to one table. Invariant: a metadata file that lost its race is deleted; one whose outcome is
unknown is kept.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session

from rowlake.catalog.default_location import default_location, known_default
from rowlake.catalog.handle import IcebergHandle
from rowlake.catalog.outdated import delete_outdated
from rowlake.catalog.ownership import next_metadata_folder
from rowlake.errors import InvalidStatementError
from rowlake.iceberg._compat import sql_row, sql_table_filter
from rowlake.iceberg.metadata_files import (
    apply_updates,
    new_location,
    new_metadata,
    read_metadata,
    to_bytes,
    validate,
    version_of,
)
from rowlake.model.names import quoted
from rowlake.storage.files import Storage
from rowlake.storage.table_io import table_io_properties

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate
    from sqlalchemy import ColumnElement

    from rowlake.iceberg.metadata_files import Definition
    from rowlake.model.names import Identifier


@dataclass(frozen=True)
class Swap:
    """One pointer to move: the table after it, and the metadata it was made from."""

    base: IcebergHandle
    after: IcebergHandle


@dataclass(frozen=True)
class SqlBackend:
    """A catalog in a database; handles carry `shown` where that stands for it."""

    catalog: SqlCatalog
    shown: Catalog | None = None

    def load(self, identifier: Identifier, known: IcebergHandle | None) -> IcebergHandle:
        """Return the table as it is now; unchanged metadata is not read again."""
        location = self._pointer(identifier)
        if location is None:
            raise NoSuchTableError(f"Table does not exist: {identifier}")
        if known is not None and known.metadata_location == location:
            return known
        metadata = read_metadata(location, Storage(self.catalog.properties))
        return self._handle(identifier, metadata, location)

    def exists(self, identifier: Identifier) -> bool:
        """Return whether there is such a table, readable or not."""
        return self._pointer(identifier) is not None

    def rename(self, identifier: Identifier, to: Identifier) -> None:
        """Give a table another name; its files stay where they are."""
        if not self.catalog.namespace_exists(to[:-1]):
            raise NoSuchNamespaceError(f"Namespace does not exist: {to[:-1]}")
        values = {"table_namespace": ".".join(to[:-1]), "table_name": to[-1]}
        try:
            with Session(self.catalog.engine) as session:
                session.execute(
                    update(IcebergTables).where(*self._row(identifier)).values(**values)
                )
                session.commit()
        except IntegrityError as error:
            raise TableAlreadyExistsError(f"Table already exists: {to}") from error

    def default_location(self, identifier: Identifier) -> str | None:
        """Return where a new table of this name would go."""
        return known_default(self.catalog, identifier)

    def pointers(self) -> list[str]:
        """Return the metadata files of all tables."""
        query = select(IcebergTables.metadata_location).where(
            IcebergTables.catalog_name == self.catalog.name
        )
        with Session(self.catalog.engine) as session:
            return [found for found in session.scalars(query) if found]

    def stage(self, identifier: Identifier, definition: Definition) -> IcebergHandle:
        """Return a table that the first commit creates."""
        if self._pointer(identifier) is not None:
            raise TableAlreadyExistsError(f"Table already exists: {identifier}")
        location = definition.location or self._default_location(identifier)
        return self._handle(identifier, new_metadata(definition, location), None)

    def commit(
        self,
        handle: IcebergHandle,
        updates: Sequence[TableUpdate],
        requirements: Sequence[TableRequirement],
    ) -> IcebergHandle:
        """Write the new metadata file and swap the pointer, or insert it for a staged table."""
        if handle.is_staged:
            return self._create(handle, updates)
        swap = self.prepare(handle, updates, requirements)
        if swap.after is swap.base:
            return swap.base
        self.swap([swap])
        return swap.after

    def prepare(
        self,
        handle: IcebergHandle,
        updates: Sequence[TableUpdate],
        requirements: Sequence[TableRequirement],
    ) -> Swap:
        """Apply the updates to the table as it is now and write its new metadata file."""
        base = self.load(handle.identifier, handle)
        validate(requirements, base.metadata)
        metadata = apply_updates(base.metadata, base.metadata_location, updates)
        if metadata == base.metadata:
            return Swap(base, base)
        folder = next_metadata_folder(base, metadata)
        location = new_location(metadata, version_of(base.metadata_location) + 1, folder)
        after = self._handle(handle.identifier, metadata, location)
        with _removing_on_failure(location, after.storage):
            after.storage.write(location, to_bytes(metadata, location))
        return Swap(base, after)

    def swap(self, swaps: Sequence[Swap]) -> None:
        """Move the pointers, all or none, then delete what the tables no longer log."""
        sent = False
        try:
            with Session(self.catalog.engine) as session:
                for one in swaps:
                    self._move(session, one)
                sent = True
                session.commit()
        except SQLAlchemyError as error:
            # Before COMMIT was sent nothing can have landed.
            if not (sent and all(self._has_landed(one, error) for one in swaps)):
                self.discard(swaps)
                raise CommitFailedException(str(error)) from error
        except CommitFailedException:
            self.discard(swaps)
            raise
        for one in swaps:
            after = one.after
            delete_outdated(one.base, after.metadata, after.metadata_location, after.storage)

    def discard(self, swaps: Sequence[Swap]) -> None:
        """Delete the metadata files of swaps that will not happen."""
        for one in swaps:
            if one.after is not one.base:
                one.after.storage.delete([str(one.after.metadata_location)])

    def _move(self, session: Session, one: Swap) -> None:
        moved = session.execute(
            update(IcebergTables)
            .where(
                *self._row(one.base.identifier),
                IcebergTables.metadata_location == one.base.metadata_location,
            )
            .values(
                metadata_location=one.after.metadata_location,
                previous_metadata_location=one.base.metadata_location,
            )
        )
        if moved.rowcount < 1:  # type: ignore[attr-defined]
            raise CommitFailedException(f"{one.base.name} was changed by another commit")

    def _has_landed(self, one: Swap, error: SQLAlchemyError) -> bool:
        """Look whether a COMMIT without an answer landed.

        The row lock of the lost transaction, if it still runs, makes this wait for its end.
        Raises CommitStateUnknownException where the database does not say, or no longer can.
        """
        pointers = IcebergTables.metadata_location, IcebergTables.previous_metadata_location
        query = select(*pointers).where(*self._row(one.base.identifier)).with_for_update()
        try:
            with Session(self.catalog.engine) as session:
                found = session.execute(query).one_or_none()
        except SQLAlchemyError:
            raise CommitStateUnknownException(str(error)) from error
        if found is not None and one.after.metadata_location in found:
            return True
        if found is not None and found[0] == one.base.metadata_location:
            return False
        raise CommitStateUnknownException(str(error)) from error

    def _create(self, staged: IcebergHandle, updates: Sequence[TableUpdate]) -> IcebergHandle:
        metadata = apply_updates(staged.metadata, None, updates) if updates else staged.metadata
        location = new_location(metadata, 0)
        with _removing_on_failure(location, staged.storage):
            staged.storage.write(location, to_bytes(metadata, location))
            self.register(staged.identifier, location)
        return replace(staged, metadata=metadata, metadata_location=location)

    def register(self, identifier: Identifier, metadata_location: str) -> None:
        """Add the row of a table whose metadata file is there."""
        namespace = ".".join(identifier[:-1])
        if not self.catalog.namespace_exists(identifier[:-1]):
            raise NoSuchNamespaceError(f"Namespace does not exist: {namespace}")
        row = sql_row(self.catalog, namespace, identifier[-1], metadata_location)
        try:
            with Session(self.catalog.engine) as session:
                session.execute(insert(IcebergTables).values(**row))
                session.commit()
        except IntegrityError as error:
            raise TableAlreadyExistsError(f"Table already exists: {identifier}") from error
        except SQLAlchemyError as error:
            raise CommitStateUnknownException(str(error)) from error

    def _pointer(self, identifier: Identifier) -> str | None:
        query = select(IcebergTables.metadata_location).where(*self._row(identifier))
        with Session(self.catalog.engine) as session:
            return session.scalar(query)

    def _row(self, identifier: Identifier) -> list[ColumnElement[bool]]:
        return [
            IcebergTables.catalog_name == self.catalog.name,
            IcebergTables.table_namespace == ".".join(identifier[:-1]),
            IcebergTables.table_name == identifier[-1],
            *sql_table_filter(self.catalog),
        ]

    def _default_location(self, identifier: Identifier) -> str:
        found = default_location(self.catalog, identifier)
        if found is None:
            raise InvalidStatementError(
                "The catalog has no warehouse: give one, or give the table a location."
            )
        return found

    def _handle(
        self, identifier: Identifier, metadata: TableMetadata, location: str | None
    ) -> IcebergHandle:
        properties = table_io_properties(
            self.catalog.properties, metadata.properties, name=quoted(identifier)
        )
        catalog = self.shown or self.catalog
        return IcebergHandle(identifier, catalog, metadata, location, properties)


@contextmanager
def _removing_on_failure(location: str, storage: Storage) -> Iterator[None]:
    """Delete a metadata file when what runs inside fails and nothing can point to it."""
    try:
        yield
    except CommitStateUnknownException:
        raise
    except Exception:
        storage.delete([location])
        raise
