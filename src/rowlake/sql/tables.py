"""Tables of a lake by the names that statements give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.query import lookup
from rowlake.query.lookup import TableLookup
from rowlake.table import Table

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.sqltext.names import Name


def find_table(lake: Lake, parts: Name) -> Table | None:
    """Return the table that a written name means; None where it is not the lake's."""
    found = TableLookup(lake.workspace).stored(parts)
    return None if found is None else Table(found, lake)


def need_table(lake: Lake, parts: Name) -> Table:
    """Return the table that a written name means, or raise."""
    return Table(TableLookup(lake.workspace).need(parts), lake)


def new_name(lake: Lake, parts: Name) -> Name:
    """Return the full name that a table to be created gets."""
    return lookup.new_name(lake.workspace, parts)
