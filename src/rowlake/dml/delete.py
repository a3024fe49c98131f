"""DELETE FROM: what can be said as a predicate is matched by the kernel, all else by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.conditions.pushed import pushed_condition
from rowlake.dml.join_sides import refuse_random
from rowlake.errors import InvalidStatementError, TableNotFoundError, UnsupportedFeatureError
from rowlake.maintain.autopilot.auto import tidied
from rowlake.plan.bind import bind
from rowlake.query.run import run_query
from rowlake.query.workspace import Lookup, need_table
from rowlake.rowlevel.change import change_rows, find_again
from rowlake.rowlevel.delete import Selection, run_delete
from rowlake.rowlevel.explain import explain_change, explain_truncate
from rowlake.rowlevel.strategy import Deletes
from rowlake.sqltext.lexer import quote, quote_parts, readable
from rowlake.verbs.write import view_for_write

if TYPE_CHECKING:
    from rowlake.catalog.handle import TableHandle
    from rowlake.dml.operations import Delete
    from rowlake.lake import Lake
    from rowlake.model.plan import Plan
    from rowlake.model.result import Result
    from rowlake.rowlevel.running import Run, T
    from rowlake.table import Table


def delete_rows(lake: Lake, statement: Delete, arguments: Any, **options: Any) -> Result:
    """Run a DELETE on a table of the lake or a branch of one."""
    if statement.where is None:
        table, options = _target(lake, statement, options)
        return table.truncate(**options)
    landed, result = _deleted(lake, statement, arguments, options, change_rows)
    tidied(landed, lake.engine, result)
    return result


def explain_delete(lake: Lake, statement: Delete, arguments: Any, **options: Any) -> Plan:
    """Return what a DELETE would do."""
    if options.get("deletes") == Deletes.EQUALITY.value:
        raise UnsupportedFeatureError(
            f"EXPLAIN DELETE on {readable(statement.name)}: deletes='equality' reads no data file, "
            "so there is nothing to say of rows and files. Leave it out to see what matches."
        )
    if statement.where is None:
        table, options = _target(lake, statement, options)
        handle, chosen = table.for_write(options)
        return explain_truncate(handle, lake.engine, chosen)
    return _deleted(lake, statement, arguments, options, explain_change)


def _deleted(
    lake: Lake, statement: Delete, arguments: Any, options: dict[str, Any], run: Run[T]
) -> T:
    table, options = _target(lake, statement, options)
    handle, chosen = table.for_write(options)

    def find(found: TableHandle) -> T:
        selection = _selection(lake, statement, found, chosen.branch, arguments)
        return run_delete(found, lake.engine, selection, chosen, run)

    return find_again(handle, find, chosen)


def _target(lake: Lake, statement: Delete, options: dict[str, Any]) -> tuple[Table, dict[str, Any]]:
    """Return the table that a statement names, and the options with the branch that it names."""
    target = Lookup(lake).target(statement.name)
    if target is None:
        raise TableNotFoundError(readable(statement.name))
    if not target.is_current:
        raise InvalidStatementError(
            f"Cannot delete from {readable(statement.name)}: only tables and their branches are "
            "written to."
        )
    table = need_table(lake, target.table)
    return table, {**options, "branch": target.branch} if target.branch else options


def _selection(
    lake: Lake, statement: Delete, handle: TableHandle, branch: str, arguments: Any
) -> Selection:
    view = view_for_write(handle, branch)
    assert statement.where is not None
    refuse_random(statement.where, "the condition of DELETE")
    visible = statement.alias or statement.name[-1]
    pushed = pushed_condition(
        statement.where,
        view.schema,
        zone=lake.engine.time_zone,
        case_sensitive=lake.engine.case_sensitive,
        qualifier=visible,
    )
    predicate = bind(pushed.predicate, view.schema)
    if pushed.exact and not arguments:
        return Selection(predicate)
    frame = run_query(
        lake,
        f"{statement.with_clause}SELECT `_file`, `_pos` "
        f"FROM {quote_parts(statement.name)} AS {quote(visible)} WHERE {statement.where}",
        arguments,
        known=[handle],
    )
    return Selection(predicate, frame, view.snapshot_id)
