"""Tables of a lake by the names that statements give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.query import lookup
from rowlake.query.lookup import TableLookup
from rowlake.table import Table

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.sqltext.names import Name


def need_table(lake: Lake, parts: Name, lookup: TableLookup | None = None) -> Table:
    """Return the table that a written name means, or raise; `lookup` may have loaded it already.

    It is for one statement: it is loaded once, and not again for each look at it.
    """
    found = (lookup or TableLookup(lake.workspace)).need(parts)
    return Table(found, lake, pinned=True)


def new_name(lake: Lake, parts: Name) -> Name:
    """Return the full name that a table to be created gets."""
    return lookup.new_name(lake.workspace, parts)
