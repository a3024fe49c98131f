"""The file-system catalog as a backend: no PyIceberg table objects, no second read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rowlake.catalog.handle import IcebergHandle
from rowlake.iceberg.metadata_files import apply_updates, read_metadata
from rowlake.model.names import quoted
from rowlake.storage.table_io import table_io_properties

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate

    from rowlake.catalog.filesystem import FileSystemCatalog
    from rowlake.iceberg.metadata_files import Definition
    from rowlake.model.names import Identifier


@dataclass(frozen=True)
class FileSystemBackend:
    """Tables as folders."""

    catalog: FileSystemCatalog

    def load(self, identifier: Identifier, known: IcebergHandle | None) -> IcebergHandle:
        """Return the table at its newest version; an unchanged one is not read again."""
        version = self.catalog.newest(identifier)
        if known is not None and known.metadata_location == version.location:
            return known
        metadata = read_metadata(version.location, self.catalog.storage)
        return self._handle(identifier, metadata, version.location)

    def exists(self, identifier: Identifier) -> bool:
        """Return whether there is such a table, readable or not."""
        return self.catalog.table_exists(identifier)

    def register(self, identifier: Identifier, metadata_location: str) -> None:
        """Not possible: a table is where its name says."""
        self.catalog.register_table(identifier, metadata_location)

    def rename(self, identifier: Identifier, to: Identifier) -> None:
        """Not possible: the location of a table is its name."""
        self.catalog.rename_table(identifier, to)

    def default_location(self, identifier: Identifier) -> str | None:
        """Return the folder of the table: its name says where it is."""
        return self.catalog.folder_of(identifier)

    def pointers(self) -> list[str]:
        """Return nothing: each table has a folder of its own."""
        return []

    def stage(self, identifier: Identifier, definition: Definition) -> IcebergHandle:
        """Return a table that the first commit creates."""
        metadata = self.catalog.new_table_metadata(identifier, definition)
        return self._handle(identifier, metadata, None)

    def commit(
        self,
        handle: IcebergHandle,
        updates: Sequence[TableUpdate],
        requirements: Sequence[TableRequirement],
    ) -> IcebergHandle:
        """Make the next version, or the first for a staged table."""
        if handle.is_staged:
            metadata = apply_updates(handle.metadata, None, updates) if updates else handle.metadata
            version = self.catalog.write_version(handle.identifier, 1, metadata, metadata)
            return replace(handle, metadata=metadata, metadata_location=version.location)
        current = self.catalog.newest(handle.identifier)
        known = handle.metadata_location == current.location
        base = handle.metadata if known else read_metadata(current.location, self.catalog.storage)
        metadata, made = self.catalog.commit_version(
            handle.identifier,
            base,
            current,
            requirements=tuple(requirements),
            updates=tuple(updates),
        )
        return self._handle(handle.identifier, metadata, made.location)

    def _handle(
        self, identifier: Identifier, metadata: TableMetadata, location: str | None
    ) -> IcebergHandle:
        properties = table_io_properties(
            self.catalog.properties, metadata.properties, name=quoted(identifier)
        )
        return IcebergHandle(identifier, self.catalog, metadata, location, properties)
