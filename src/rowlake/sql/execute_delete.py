"""DELETE FROM: what can be said as a predicate is matched by the kernel, all else by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.errors import InvalidStatementError, TableNotFoundError
from rowlake.plan.bind import bind
from rowlake.rowlevel.delete import Selection, delete
from rowlake.sql.condition import pushed_condition
from rowlake.sql.lexer import quote, quote_parts, readable
from rowlake.sql.run import run_query
from rowlake.sql.session import Lookup, need_table
from rowlake.sql.sides import refuse_random
from rowlake.verbs.write import view_for_write

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.model.result import Result
    from rowlake.model.view import TableView
    from rowlake.sql.statements import Delete


def delete_rows(lake: Lake, statement: Delete, arguments: Any, **options: Any) -> Result:
    """Run a DELETE on a table of the lake or a branch of one."""
    target = Lookup(lake).target(statement.name)
    if target is None:
        raise TableNotFoundError(readable(statement.name))
    if not target.is_current:
        raise InvalidStatementError(
            f"Cannot delete from {readable(statement.name)}: only tables and their branches are "
            "written to."
        )
    table = need_table(lake, target.table)
    if target.branch:
        options["branch"] = target.branch
    if statement.where is None:
        return table.truncate(**options)
    handle, chosen = table.for_write(options)
    view = view_for_write(handle, chosen.branch)
    selection = _selection(lake, statement, view, arguments)
    return delete(handle, lake.engine, selection, chosen)[1]


def _selection(lake: Lake, statement: Delete, view: TableView, arguments: Any) -> Selection:
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
    )
    return Selection(predicate, frame, view.snapshot_id)
