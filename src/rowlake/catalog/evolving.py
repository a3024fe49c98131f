"""A catalog as PyIceberg's schema and spec builders see it: commits fail with rowlake's errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

from rowlake.catalog.metadata_checks import validate_new_schemas
from rowlake.errors import CommitConflictError, CommitStateUnknownError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import CommitTableResponse, Table
    from pyiceberg.table.update import TableRequirement, TableUpdate


class LostRaceError(CommitConflictError, CommitFailedException):
    """rowlake's conflict, which PyIceberg's own retries still know."""


class EvolvingCatalog:
    """Passes everything on to a catalog, but for the errors of commits."""

    def __init__(self, catalog: Catalog, table: str) -> None:
        self._catalog, self._table = catalog, table

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_catalog"], name)

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        """Commit; a lost race is a `CommitConflictError`."""
        validate_new_schemas(updates)
        try:
            return self._catalog.commit_table(table, requirements, updates)
        except CommitFailedException as error:
            cause = " ".join(str(error).split())
            raise LostRaceError("ALTER TABLE", self._table, cause, retryable=True) from error
        except CommitStateUnknownException as error:
            raise CommitStateUnknownError(self._table, None, str(error)) from error
