"""EXPLAIN DELETE | UPDATE | MERGE: what would happen; nothing is written.

A statement is explained inside a transaction that never lands: what it would commit before its
rows (columns that a MERGE adds, the branch that a session writes to) is seen by it alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.catalog.holding import HoldingCatalog
from rowlake.dml.delete import explain_delete
from rowlake.dml.merge import explain_merge
from rowlake.dml.operations import Delete, Update
from rowlake.dml.update import explain_update
from rowlake.query.workspace import share_session

if TYPE_CHECKING:
    from rowlake.dml.operations import Merge
    from rowlake.lake import Lake
    from rowlake.model.plan import Plan


def explain_row_level(
    lake: Lake, statement: Delete | Update | Merge, arguments: Any, **options: Any
) -> Plan:
    """Return the plan of a row-level statement."""
    inside = _apart(lake)
    if isinstance(statement, Delete):
        return explain_delete(inside, statement, arguments, **options)
    if isinstance(statement, Update):
        return explain_update(inside, statement, arguments, **options)
    return explain_merge(inside, statement, arguments, **options)


def _apart(lake: Lake) -> Lake:
    """Return the same lake, with commits that wait for nothing."""
    catalog: Any = HoldingCatalog(lake.catalog)
    inside = type(lake)(catalog, lake.engine)
    share_session(lake, inside)
    return inside
