"""DELETE: what can be said as a predicate is matched by the kernel, all else by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.conditions.pushed import pushed_condition
from rowlake.dml.join_sides import refuse_random
from rowlake.dml.target import row_target
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.maintain.autopilot.auto import tidied
from rowlake.prune.bind import bind
from rowlake.query.lookup import names_without_spark
from rowlake.query.run import run_query
from rowlake.rowlevel.change import change_rows, find_again
from rowlake.rowlevel.delete import Selection, run_delete
from rowlake.rowlevel.equality_writes import blind_delete
from rowlake.rowlevel.explain import explain_change, explain_truncate
from rowlake.rowlevel.strategy import Deletes, deletes_of
from rowlake.sqltext.lexer import quote, quote_parts, readable
from rowlake.verbs.write import truncate

if TYPE_CHECKING:
    from rowlake.conditions.reader import Pushed
    from rowlake.dml.operations import Delete
    from rowlake.dml.target import RowTarget
    from rowlake.model.handle import TableHandle
    from rowlake.model.plan import Plan
    from rowlake.model.predicate import Predicate
    from rowlake.model.result import Result
    from rowlake.query.lookup import TableLookup
    from rowlake.rowlevel.runner import Run, T
    from rowlake.sqltext.names import NameRules


def delete_rows(
    lookup: TableLookup, operation: Delete, arguments: Any, **options: Any
) -> tuple[TableHandle, Result]:
    """Run a DELETE on a table of the lake or a branch of one."""
    target = row_target(lookup, operation, "delete from", options)
    where = operation.where
    if where is None:
        landed, result = truncate(target.handle, target.options)
    elif _is_blind(target):
        predicate = _blind_predicate(target, where, arguments)
        landed, result = blind_delete(target.handle, predicate, target.options)
    else:
        landed, result = _deleted(target, operation, arguments, change_rows)
    return tidied(landed, target.engine, result), result


def explain_delete(lookup: TableLookup, operation: Delete, arguments: Any, **options: Any) -> Plan:
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

    def find(handle: TableHandle) -> T:
        selection = _selection(target.at(handle), operation, arguments)
        return run_delete(handle, target.engine, selection, target.options, run)

    return find_again(target.handle, find, target.options)


def _selection(target: RowTarget, operation: Delete, arguments: Any) -> Selection:
    view, where = target.view, operation.where
    assert where is not None
    if not isinstance(where, str):
        return Selection(bind(where, view.schema))
    where = target.short(where, names_without_spark(target.engine))
    pushed = _pushed(target, where)
    predicate = bind(pushed.predicate, view.schema)
    if pushed.exact and not arguments:
        return Selection(predicate)
    frame = run_query(
        target.lookup,
        f"{operation.with_clause}SELECT `_file`, `_pos` FROM {quote_parts(operation.name)} "
        f"AS {quote(target.visible)} WHERE {where}",
        arguments,
    )
    return Selection(predicate, frame, view.snapshot_id)


def _pushed(target: RowTarget, where: str) -> Pushed:
    """Return what a condition says as a predicate; Spark is started only where that is not all."""
    found = _said(target, where, names_without_spark(target.engine))
    return found if found.exact or target.engine.has_session else _said(target, where, target.names)


def _said(target: RowTarget, where: str, names: NameRules) -> Pushed:
    return pushed_condition(
        where,
        target.view.schema,
        zone=names.zone,
        case_sensitive=names.case_sensitive,
        qualifier=target.visible,
    )


# --- without reading the table


def _is_blind(target: RowTarget) -> bool:
    asked = deletes_of(target.options.deletes, target.handle, target.options.mode)
    return asked is Deletes.EQUALITY


def _blind_predicate(target: RowTarget, where: str | Predicate, arguments: Any) -> Predicate:
    """Return a condition as a predicate, all of it, so that no row has to be looked at."""
    if not isinstance(where, str):
        return where
    pushed = _pushed(target, target.short(where, names_without_spark(target.engine)))
    if not pushed.exact or arguments:
        raise InvalidStatementError(
            f"Cannot delete from {target.handle.name} with deletes='equality' where {where}: "
            "such a condition compares columns with literals by =, IN and IS NULL, joined by AND "
            "and OR."
        )
    return pushed.predicate
