"""CREATE TABLE and REPLACE TABLE: a definition becomes a table.

A table of that name is an error, unless it may be there (`if_not_exists`) or is to be replaced: a
replaced table keeps its history, its refs and its uuid, as Iceberg's REPLACE TABLE does.
"""

from __future__ import annotations

from dataclasses import replace as changed
from typing import TYPE_CHECKING, Any

from rowlake.catalog.formats import create_table as create_in
from rowlake.catalog.formats import load_table, table_exists
from rowlake.commit.metadata import commit_metadata
from rowlake.errors import InvalidStatementError
from rowlake.model.metadata_change import Redefine
from rowlake.model.names import quoted
from rowlake.verbs.schema_input import schema_of
from rowlake.write.property_rules import validate_settable

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
    validate_settable(definition.properties)
    definition = changed(definition, schema=schema_of(definition.schema))
    if table_exists(catalog, identifier):
        handle = load_table(catalog, identifier)
        if if_not_exists:
            return handle
        if not replace:
            raise already_there(identifier)
        validate_format(handle, definition)
        return commit_metadata(handle, "REPLACE TABLE", Redefine(definition))
    return create_in(catalog, identifier, definition, staged=staged)


def validate_format(handle: TableHandle, definition: TableDefinition) -> None:
    """Refuse to replace a table by one of another format."""
    if definition.format and definition.format != handle.format.name:
        raise InvalidStatementError(
            f"Cannot replace {handle.name}, a table of format {handle.format.name}, by one of "
            f"format {definition.format}: drop it first."
        )


def already_there(identifier: tuple[str, ...]) -> InvalidStatementError:
    """Return the error for a table that must not exist."""
    return InvalidStatementError(
        f"There is a table {quoted(identifier)} already. "
        "Use IF NOT EXISTS to keep it, or CREATE OR REPLACE TABLE to replace it."
    )
