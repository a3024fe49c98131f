"""How an embedded lake loads and changes tables: looks by itself, changes as SQL catalogs do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.exceptions import NoSuchTableError

from rowlake.catalog.default_location import known_default
from rowlake.catalog.handle import IcebergHandle
from rowlake.iceberg.metadata_files import read_metadata
from rowlake.model.names import quoted
from rowlake.storage.files import Storage
from rowlake.storage.table_io import table_io_properties

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.table.update import TableRequirement, TableUpdate

    from rowlake.catalog.embedded import EmbeddedCatalog
    from rowlake.catalog.sql import SqlBackend
    from rowlake.iceberg.metadata_files import Definition
    from rowlake.model.names import Identifier


@dataclass(frozen=True)
class EmbeddedBackend:
    """The catalog of an embedded lake."""

    catalog: EmbeddedCatalog

    @property
    def changes(self) -> SqlBackend:
        """What makes the changes."""
        from rowlake.catalog.sql import SqlBackend  # here, since it loads SQLAlchemy

        return SqlBackend(self.catalog.whole, shown=self.catalog)

    def load(self, identifier: Identifier, known: IcebergHandle | None) -> IcebergHandle:
        """Return the table as it is now; unchanged metadata is not read again."""
        location = self.catalog.pointer(identifier)
        if location is None:
            raise NoSuchTableError(f"Table does not exist: {identifier}")
        if known is not None and known.metadata_location == location:
            return known
        metadata = read_metadata(location, Storage(self.catalog.properties))
        properties = table_io_properties(
            self.catalog.properties, metadata.properties, name=quoted(identifier)
        )
        return IcebergHandle(identifier, self.catalog, metadata, location, properties)

    def exists(self, identifier: Identifier) -> bool:
        """Return whether there is such a table, readable or not."""
        return self.catalog.pointer(identifier) is not None

    def register(self, identifier: Identifier, metadata_location: str) -> None:
        """Add the row of a table whose metadata file is there."""
        self.changes.register(identifier, metadata_location)

    def rename(self, identifier: Identifier, to: Identifier) -> None:
        """Give a table another name; its files stay where they are."""
        self.changes.rename(identifier, to)

    def default_location(self, identifier: Identifier) -> str | None:
        """Return where a new table of this name would go."""
        return known_default(self.catalog, identifier)

    def pointers(self) -> list[str]:
        """Return the metadata files of all tables."""
        return self.catalog.pointers()

    def stage(self, identifier: Identifier, definition: Definition) -> IcebergHandle:
        """Return a table that the first commit creates."""
        return self.changes.stage(identifier, definition)

    def commit(
        self,
        handle: IcebergHandle,
        updates: Sequence[TableUpdate],
        requirements: Sequence[TableRequirement],
    ) -> IcebergHandle:
        """Write the new metadata file and swap the pointer."""
        return self.changes.commit(handle, updates, requirements)
