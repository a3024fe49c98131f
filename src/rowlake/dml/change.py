"""DELETE, UPDATE and MERGE: the entry point for statements, `Table`'s methods and `MergeBuilder`.

An operation is explained inside a transaction that never lands: what it would commit before its
rows (columns that a MERGE adds, the branch that a session writes to) is seen by it alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from rowlake.commit.rerun import rerun_on_conflict
from rowlake.dml.delete import delete_rows, explain_delete
from rowlake.dml.merge import merge_rows
from rowlake.dml.operations import Delete, Update
from rowlake.dml.target import row_target
from rowlake.dml.update import update_rows
from rowlake.engine.tally import says_where_it_ran, tallied, with_place
from rowlake.maintain.autopilot.auto import tidied
from rowlake.model.predicate_text import predicate_text
from rowlake.model.provenance import noted
from rowlake.query.lookup import TableLookup
from rowlake.query.refusals import run_plainly
from rowlake.rowlevel.change import change_rows as run_change
from rowlake.rowlevel.explain import explain_change
from rowlake.sources.rows import rereadable
from rowlake.verbs.write import is_done

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rowlake.dml.operations import Merge
    from rowlake.model.handle import TableHandle
    from rowlake.model.plan import Plan
    from rowlake.model.result import Result
    from rowlake.query.lookup import TableLookup
    from rowlake.rowlevel.runner import Run, T

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
    if not isinstance(operation, (Delete, Update)):
        operation = replace(operation, source=rereadable(operation.source))
    options["properties"] = {**_notes(operation), **(options.get("properties") or {})}
    with tallied() as tally, _plainly(lookup, operation):
        landed, result = _landed(lookup, operation, arguments, options)
        landed = tidied(landed, lookup.engine, result)
    return landed, with_place(result, tally)


def _plainly(
    lookup: TableLookup, operation: Delete | Update | Merge
) -> AbstractContextManager[None]:
    """Return what turns Spark's errors into ours; those of a DELETE point into its condition."""
    where = operation.where if isinstance(operation, Delete) else None
    text = where if isinstance(where, str) else ""
    return run_plainly(lookup.workspace, text, is_condition=True)


def _notes(operation: Delete | Update | Merge) -> dict[str, str]:
    """Return what the snapshot's summary says of an operation."""
    condition = operation.where if isinstance(operation, (Delete, Update)) else operation.on
    if condition is not None and not isinstance(condition, str):
        condition = predicate_text(condition)
    return noted(type(operation).__name__.lower(), condition)


def _landed(
    lookup: TableLookup, operation: Delete | Update | Merge, arguments: Any, options: dict[str, Any]
) -> tuple[TableHandle, Result]:
    """Run an operation until it lands: after a conflict, all of it again on the tables as they are.

    The texts are bound again too, so it does not matter if columns were added or renamed.
    """
    runs: list[TableLookup] = []

    def run(found: TableHandle | None) -> tuple[TableHandle, Result]:
        runs.append(lookup.again(found) if runs and found else lookup)
        landed, result = _run(runs[-1], operation, arguments, dict(options))
        return landed, replace(result, retries=result.retries + len(runs) - 1)

    target = lookup.target(operation.name)
    handle = None if target is None else lookup.stored(target.table)
    with lookup.closing:
        return run(None) if handle is None else rerun_on_conflict(handle, run)


def _run(
    lookup: TableLookup, operation: Delete | Update | Merge, arguments: Any, options: dict[str, Any]
) -> tuple[TableHandle, Result]:
    operation = _placed(lookup, operation, options)
    if options.get("app_batch") is not None:
        target = row_target(lookup, operation, "write to", options)
        done = is_done(target.handle, target.options, type(operation).__name__.lower())
        if done is not None:
            return target.handle, done
    if isinstance(operation, Delete):
        return delete_rows(lookup, operation, arguments, options)
    return _changed(lookup, operation, arguments, options, run_change)


def _changed(
    lookup: TableLookup,
    operation: Update | Merge,
    arguments: Any,
    options: dict[str, Any],
    run: Run[T],
) -> T:
    if isinstance(operation, Update):
        return update_rows(lookup, operation, arguments, options, run)
    return merge_rows(lookup, operation, arguments, options, run)


@says_where_it_ran
def explain_rows(
    lookup: TableLookup,
    operation: Delete | Update | Merge,
    arguments: Any = None,
    **options: Any,
) -> Plan:
    """Return the plan of an operation; nothing is written."""
    apart = lookup.apart()
    operation = _placed(apart, operation, options)
    with _plainly(lookup, operation), apart.closing:
        if isinstance(operation, Delete):
            return explain_delete(apart, operation, arguments, options)
        return _changed(apart, operation, arguments, options, explain_change)


def _placed(lookup: TableLookup, operation: Changing, options: dict[str, Any]) -> Changing:
    """Return an operation on the branch of the options, which is taken out of them."""
    if options.get("branch") in (None, MAIN):
        return operation
    alias = operation.alias or operation.name[-1]
    name = lookup.on_branch(operation.name, options.pop("branch"))
    return replace(operation, name=name, alias=alias)
