"""DELETE: what can be said as a predicate is matched by the kernel, all else by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.dml.join_sides import refuse_random
from rowlake.dml.target import row_target
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.prune.bind import bind
from rowlake.query.row_condition import RowCondition, pushed_rows, rows_where
from rowlake.rowlevel.change import change_rows
from rowlake.rowlevel.delete import Selection, run_delete
from rowlake.rowlevel.equality_writes import blind_delete
from rowlake.rowlevel.explain import explain_change, explain_truncate
from rowlake.rowlevel.strategy import Deletes, deletes_of
from rowlake.sqltext.lexer import readable
from rowlake.verbs.write import truncate

if TYPE_CHECKING:
    from rowlake.dml.operations import Delete
    from rowlake.dml.target import RowTarget
    from rowlake.model.handle import TableHandle
    from rowlake.model.plan import Plan
    from rowlake.model.predicate import Predicate
    from rowlake.model.result import Result
    from rowlake.query.lookup import TableLookup
    from rowlake.rowlevel.runner import Run, T


def delete_rows(
    lookup: TableLookup, operation: Delete, arguments: Any, options: dict[str, Any]
) -> tuple[TableHandle, Result]:
    """Run a DELETE on a table of the lake or a branch of one."""
    target = row_target(lookup, operation, "delete from", options)
    where = operation.where
    if where is None:
        return truncate(target.handle, target.options)
    if _is_blind(target):
        predicate = _blind_predicate(target, where, arguments)
        return blind_delete(target.handle, predicate, target.options)
    return _deleted(target, operation, arguments, change_rows)


def explain_delete(
    lookup: TableLookup, operation: Delete, arguments: Any, options: dict[str, Any]
) -> Plan:
    """Return what a DELETE would do."""
    if options.get("deletes") == Deletes.EQUALITY.value:
        raise UnsupportedFeatureError(
            f"EXPLAIN DELETE on {readable(operation.name)}: deletes='equality' reads no data file, "
            "so there is nothing to say of rows and files. Leave it out to see what matches."
        )
    target = row_target(lookup, operation, "delete from", options)
    if operation.where is None:
        return explain_truncate(target.handle, target.engine, target.options)
    return _deleted(target, operation, arguments, explain_change)


def _deleted(target: RowTarget, operation: Delete, arguments: Any, run: Run[T]) -> T:
    if isinstance(operation.where, str):
        refuse_random(operation.where, "the condition of DELETE")
    selection = _selection(target, operation, arguments)
    return run_delete(target.handle, target.engine, selection, target.options, run)


def _selection(target: RowTarget, operation: Delete, arguments: Any) -> Selection:
    view, where = target.view, operation.where
    assert where is not None
    if not isinstance(where, str):
        return Selection(bind(where, view.schema))
    condition = _condition(target, where)
    pushed = pushed_rows(target.engine, condition)
    predicate = bind(pushed.predicate, view.schema)
    if pushed.exact and not arguments:
        return Selection(predicate)
    frame = rows_where(
        target.lookup,
        operation.name,
        condition,
        ("`_file`", "`_pos`"),
        arguments,
        with_clause=operation.with_clause,
    )
    return Selection(predicate, frame, view.snapshot_id)


def _condition(target: RowTarget, where: str) -> RowCondition:
    return RowCondition(where, target.view.schema, target.visible, target.written)


# --- without reading the table


def _is_blind(target: RowTarget) -> bool:
    asked = deletes_of(target.options.deletes, target.handle, target.options.mode)
    return asked is Deletes.EQUALITY


def _blind_predicate(target: RowTarget, where: str | Predicate, arguments: Any) -> Predicate:
    """Return a condition as a predicate, all of it, so that no row has to be looked at."""
    if not isinstance(where, str):
        return where
    pushed = pushed_rows(target.engine, _condition(target, where))
    if not pushed.exact or arguments:
        raise InvalidStatementError(
            f"Cannot delete from {target.handle.name} with deletes='equality' where {where}: "
            "such a condition compares columns with literals by =, IN and IS NULL, joined by AND "
            "and OR."
        )
    return pushed.predicate
