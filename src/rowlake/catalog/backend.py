"""How one kind of catalog loads, creates and swaps metadata; the kinds, chosen once.

- SQL catalogs (SQLite and PostgreSQL included): we read and write the metadata files and swap
  the pointer in the database; the embedded lake's looks need no SQLAlchemy;
- the file-system catalog: the version files are the pointer;
- all others (REST, Hive, Glue, …): through PyIceberg's own methods;
- a transaction's: commits are held back until all land.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.table.update import TableRequirement, TableUpdate

    from rowlake.catalog.handle import IcebergHandle
    from rowlake.iceberg.metadata_files import Definition
    from rowlake.model.names import Identifier

# The endpoint of a REST catalog for several tables at once.
COMMIT_MANY = "POST /v1/{prefix}/transactions/commit"


class Backend(Protocol):
    """What each kind does. Errors are PyIceberg's or rowlake's; callers translate."""

    def load(self, identifier: Identifier, known: IcebergHandle | None) -> IcebergHandle:
        """Return the table as it is now; `known` may save reading what has not changed."""

    def exists(self, identifier: Identifier) -> bool:
        """Return whether there is such a table, readable or not."""

    def register(self, identifier: Identifier, metadata_location: str) -> None:
        """Add a table whose metadata file is there."""

    def rename(self, identifier: Identifier, to: Identifier) -> None:
        """Give a table another name."""

    def stage(self, identifier: Identifier, definition: Definition) -> IcebergHandle:
        """Return a table that the first commit creates; nothing is written yet."""

    def default_location(self, identifier: Identifier) -> str | None:
        """Return where the catalog would put a new table of this name; None where it is not known.

        The answer rests on the catalog alone, never on what a table says about itself.
        """

    def pointers(self) -> list[str]:
        """Return the metadata files of all tables; none where tables cannot share folders."""

    def commit(
        self,
        handle: IcebergHandle,
        updates: Sequence[TableUpdate],
        requirements: Sequence[TableRequirement],
    ) -> IcebergHandle:
        """Validate, apply, write and swap; returns the table after it.

        Raises PyIceberg's CommitFailedException where the requirements do not hold or another
        commit was first, CommitStateUnknownException where nobody can tell.
        """


def backend_of(catalog: Catalog) -> Backend:
    """Return the backend of a catalog's kind; each is loaded at its first use."""
    from rowlake.catalog.embedded import EmbeddedCatalog
    from rowlake.catalog.filesystem import FileSystemCatalog

    holding = sys.modules.get("rowlake.catalog.transaction")
    if holding is not None and isinstance(catalog, holding.HoldingCatalog):
        return cast("Backend", holding.HoldingBackend(catalog))
    if isinstance(catalog, EmbeddedCatalog):
        from rowlake.catalog.embedded_backend import EmbeddedBackend

        return EmbeddedBackend(catalog)
    if isinstance(catalog, FileSystemCatalog):
        from rowlake.catalog.filesystem_backend import FileSystemBackend

        return FileSystemBackend(catalog)
    sql = sys.modules.get("pyiceberg.catalog.sql")
    if sql is not None and isinstance(catalog, sql.SqlCatalog):
        from rowlake.catalog.sql import SqlBackend

        return SqlBackend(catalog)
    from rowlake.catalog.generic import GenericBackend

    return GenericBackend(catalog)


def can_commit_many(catalog: Catalog) -> bool:
    """Return whether a catalog commits to several tables at once, all or nothing."""
    kinds = kinds_of(catalog)
    if "RestCatalog" in kinds:
        from rowlake.iceberg._compat import rest_offers

        return rest_offers(catalog, COMMIT_MANY)
    return bool(kinds & {"EmbeddedCatalog", "SqlCatalog"})


def kinds_of(catalog: Catalog) -> set[str]:
    """Return the names of a catalog's classes, so that none must be loaded to ask."""
    return {kind.__name__ for kind in type(catalog).__mro__}
