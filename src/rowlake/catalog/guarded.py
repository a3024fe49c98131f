"""A catalog for PyIceberg's own table objects whose commits are rowlake's.

PyIceberg writes the next metadata file where the metadata says, and deletes whatever the metadata
log names. Through this catalog both follow rowlake's rules (`rowlake.catalog.ownership`); all else
goes to the catalog under it. Errors are rowlake's, and PyIceberg's as well: its own retries know
them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.table import CommitTableResponse

from rowlake.catalog.backend import backend_of
from rowlake.catalog.commit import cause_of, text_of
from rowlake.errors import CommitConflictError, CommitStateUnknownError
from rowlake.iceberg.metadata_checks import validate_commit

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.update import TableRequirement, TableUpdate

    from rowlake.catalog.handle import IcebergHandle


class LostRaceError(CommitConflictError, CommitFailedException):
    """A commit that another one overtook."""


class UnknownOutcomeError(CommitStateUnknownError, CommitStateUnknownException):
    """A commit whose outcome nobody can tell."""


class GuardedCatalog:
    """The catalog of a table that was handed out as PyIceberg's object."""

    def __init__(self, handle: IcebergHandle) -> None:
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
        validate_commit(table, updates)
        base = replace(
            self._handle, metadata=table.metadata, metadata_location=table.metadata_location
        )
        try:
            landed = backend_of(base.catalog).commit(base, updates, requirements)
        except CommitFailedException as error:
            cause = text_of(error, base)
            raise LostRaceError("ALTER TABLE", base.name, cause, retryable=True) from cause_of(
                error, base
            )
        except CommitStateUnknownException as error:
            raise UnknownOutcomeError(base.name, None, text_of(error, base)) from cause_of(
                error, base
            )
        return CommitTableResponse(
            metadata=landed.metadata, metadata_location=str(landed.metadata_location)
        )

    def _delete_old_metadata(self, *_: object) -> None:
        """Do nothing: the commit deleted what is the table's own."""
