"""A table as its catalog holds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from rowlake.catalog.names import quoted
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

    from rowlake.catalog.names import Identifier


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

    def evolving(self) -> Table:
        """Return the table as PyIceberg's own object; its commits fail with rowlake's errors."""
        from rowlake.catalog.evolving import EvolvingCatalog

        table = self.to_pyiceberg()
        table.catalog = EvolvingCatalog(self.catalog, self.name)  # type: ignore[assignment]
        return table

    def to_pyiceberg(self) -> Table:
        """Return the table as PyIceberg's own object."""
        from pyiceberg.table import Table

        from rowlake.catalog.io import StorageFileIO

        return Table(
            self.identifier,
            self.metadata,
            self.metadata_location or "",
            StorageFileIO(dict(self.io_properties)),
            self.catalog,
            dict(self.config),
        )
