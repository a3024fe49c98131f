"""CREATE TABLE and REPLACE TABLE: a definition becomes a table.

A table of that name is an error, unless it may be there (`if_not_exists`) or is to be replaced: a
replaced table keeps its history, its refs and its uuid, as Iceberg's REPLACE TABLE does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.catalog import tables as catalog_tables
from rowlake.commit.metadata import commit_metadata
from rowlake.errors import InvalidStatementError
from rowlake.formats import format_named
from rowlake.model.metadata_change import Redefine
from rowlake.model.names import quoted

if TYPE_CHECKING:
    from rowlake.model.handle import TableHandle
    from rowlake.model.metadata_change import TableDefinition


def create_table(
    catalog: Any,
    identifier: tuple[str, ...],
    definition: TableDefinition,
    *,
    if_not_exists: bool = False,
    replace: bool = False,
    staged: bool = False,
) -> TableHandle:
    """Create a table, or replace one; `staged` leaves the creating to the first commit."""
    if catalog_tables.table_exists(catalog, identifier):
        handle = catalog_tables.load_table(catalog, identifier)
        if if_not_exists:
            return handle
        if not replace:
            raise already_there(identifier)
        return commit_metadata(handle, "REPLACE TABLE", Redefine(definition))
    return format_named("iceberg").create(catalog, identifier, definition, staged=staged)


def already_there(identifier: tuple[str, ...]) -> InvalidStatementError:
    """Return the error for a table that must not exist."""
    return InvalidStatementError(
        f"There is a table {quoted(identifier)} already. "
        "Use IF NOT EXISTS to keep it, or CREATE OR REPLACE TABLE to replace it."
    )
