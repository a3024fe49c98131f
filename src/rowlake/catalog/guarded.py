"""A catalog for PyIceberg's own table objects whose commits are rowlake's.

PyIceberg writes the next metadata file where the metadata says, and deletes whatever the metadata
log names. Through this catalog both follow rowlake's rules (`rowlake.catalog.ownership`); all else
goes to the catalog under it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyiceberg.table import CommitTableResponse, StagedTable

from rowlake.catalog.backend import backend_of
from rowlake.catalog.metadata import validate_no_secret_updates

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.update import TableRequirement, TableUpdate

    from rowlake.catalog.handle import TableHandle


class GuardedCatalog:
    """The catalog of a table that was handed out as PyIceberg's object."""

    def __init__(self, handle: TableHandle) -> None:
        self._handle = handle

    def __getattr__(self, name: str) -> Any:
        if name == "_handle":  # asked for before it is set, by copies
            raise AttributeError(name)
        return getattr(self._handle.catalog, name)

    # PyIceberg plans scans on a server where the catalog is a RestCatalog.
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._handle.catalog)

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        """Commit as rowlake does."""
        is_new = isinstance(table, StagedTable)
        validate_no_secret_updates(updates, None if is_new else table.metadata.properties)
        base = replace(
            self._handle, metadata=table.metadata, metadata_location=table.metadata_location
        )
        landed = backend_of(base.catalog).commit(base, updates, requirements)
        return CommitTableResponse(
            metadata=landed.metadata, metadata_location=str(landed.metadata_location)
        )

    def _delete_old_metadata(self, *_: object) -> None:
        """Do nothing: the commit deleted what is the table's own."""
