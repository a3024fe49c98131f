"""DELETE, UPDATE and MERGE: the entry point for statements, `Table`'s methods and `MergeBuilder`.

An operation is explained inside a transaction that never lands: what it would commit before its
rows (columns that a MERGE adds, the branch that a session writes to) is seen by it alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from rowlake.catalog.transaction import HoldingCatalog
from rowlake.dml.delete import delete_rows, explain_delete
from rowlake.dml.merge import explain_merge, merge_rows
from rowlake.dml.operations import Delete, Update
from rowlake.dml.update import explain_update, update_rows
from rowlake.engine.tally import says_where_it_ran, tallied, with_place
from rowlake.query.lookup import TableLookup
from rowlake.query.refusals import refusing_too_complex

if TYPE_CHECKING:
    from rowlake.dml.operations import Merge
    from rowlake.model.handle import TableHandle
    from rowlake.model.plan import Plan
    from rowlake.model.result import Result

    Changing = TypeVar("Changing", bound=Delete | Update | Merge)

MAIN = "main"


def change_rows(
    lookup: TableLookup,
    operation: Delete | Update | Merge,
    arguments: Any = None,
    **options: Any,
) -> tuple[TableHandle, Result]:
    """Run an operation on tables that `lookup` finds; return the table after it, and the result.

    `options` are those of every write (`branch`, `mode`, …).
    """
    operation = _placed(lookup, operation, options)
    with tallied() as tally, refusing_too_complex():
        if isinstance(operation, Delete):
            landed, result = delete_rows(lookup, operation, arguments, **options)
        elif isinstance(operation, Update):
            landed, result = update_rows(lookup, operation, arguments, **options)
        else:
            landed, result = merge_rows(lookup, operation, arguments, **options)
    return landed, with_place(result, tally)


@says_where_it_ran
def explain_rows(
    lookup: TableLookup,
    operation: Delete | Update | Merge,
    arguments: Any = None,
    **options: Any,
) -> Plan:
    """Return the plan of an operation; nothing is written."""
    apart = TableLookup(lookup.workspace.over(HoldingCatalog(lookup.workspace.catalog)))
    operation = _placed(apart, operation, options)
    with refusing_too_complex():
        if isinstance(operation, Delete):
            return explain_delete(apart, operation, arguments, **options)
        if isinstance(operation, Update):
            return explain_update(apart, operation, arguments, **options)
        return explain_merge(apart, operation, arguments, **options)


def _placed(lookup: TableLookup, operation: Changing, options: dict[str, Any]) -> Changing:
    """Return an operation on the branch of the options, which is taken out of them."""
    if options.get("branch") in (None, MAIN):
        return operation
    alias = operation.alias or operation.name[-1]
    name = lookup.on_branch(operation.name, options.pop("branch"))
    return replace(operation, name=name, alias=alias)
