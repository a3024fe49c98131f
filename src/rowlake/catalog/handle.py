"""A table as its catalog holds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

from rowlake.model.names import quoted
from rowlake.secrets import without_passwords
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

    from rowlake.model.names import Identifier


@dataclass(frozen=True)
class TableHandle:
    """A table's metadata at one time, with what it takes to commit to it.

    `metadata_location` is None for a table that is staged: it is there only in this handle
    until the first commit creates it. `io_properties` open its files; `config` is what a REST
    catalog sent along.
    """

    identifier: Identifier
    catalog: Catalog
    metadata: TableMetadata
    metadata_location: str | None
    io_properties: Mapping[str, str]
    config: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        # The metadata's text is long, and all of these may hold secrets.
        return f"TableHandle({self.name}, {without_passwords(self.metadata_location or 'staged')})"

    @property
    def name(self) -> str:
        """The name as a user writes it."""
        return quoted(self.identifier)

    @property
    def is_staged(self) -> bool:
        """True before the commit that creates the table."""
        return self.metadata_location is None

    @cached_property
    def storage(self) -> Storage:
        """The storage of the table's files."""
        return Storage(self.io_properties)

    def to_pyiceberg(self) -> Table:
        """Return the table as PyIceberg's own object; its commits follow rowlake's rules."""
        from rowlake.catalog.guarded import GuardedCatalog
        from rowlake.catalog.transaction import holding

        catalog = self.catalog if holding(self) else cast("Catalog", GuardedCatalog(self))
        return self._pyiceberg_table(catalog)

    def plain_pyiceberg(self) -> Table:
        """Return the table as an object for PyIceberg's own catalog methods."""
        return self._pyiceberg_table(self.catalog)

    def _pyiceberg_table(self, catalog: Catalog) -> Table:
        from pyiceberg.table import Table

        from rowlake.catalog.io import StorageFileIO

        return Table(
            self.identifier,
            self.metadata,
            self.metadata_location or "",
            StorageFileIO(dict(self.io_properties)),
            catalog,
            dict(self.config),
        )
