"""DELETE FROM: what can be said as a predicate is matched by the kernel, all else by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.errors import InvalidStatementError, TableNotFoundError
from rowlake.model.predicate import TRUE
from rowlake.plan.bind import bind
from rowlake.rowlevel.delete import Selection
from rowlake.rowlevel.gather import found_positions
from rowlake.sql.condition import pushed_condition
from rowlake.sql.lexer import quote, quote_parts, readable
from rowlake.sql.run import run_query
from rowlake.sql.session import Lookup, need_table

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.model.result import Result
    from rowlake.model.schema import Schema
    from rowlake.sql.statements import Delete


def delete_rows(lake: Lake, statement: Delete, arguments: Any) -> Result:
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
    options = {"branch": target.branch} if target.branch else {}
    if statement.where is None:
        return table.truncate(**options)
    return table.delete_selected(_selection(lake, statement, target.schema, arguments), **options)


def _selection(lake: Lake, statement: Delete, schema: Schema, arguments: Any) -> Selection:
    if statement.where is None:
        return Selection(TRUE)
    visible = statement.alias or statement.name[-1]
    pushed = pushed_condition(
        statement.where,
        schema,
        zone=lake.engine.time_zone,
        case_sensitive=lake.engine.case_sensitive,
        qualifier=visible,
    )
    predicate = bind(pushed.predicate, schema)
    if pushed.exact and not arguments:
        return Selection(predicate)
    frame = run_query(
        lake,
        f"SELECT `_file`, `_pos` FROM {quote_parts(statement.name)} AS {quote(visible)} "
        f"WHERE {statement.where}",
        arguments,
    )
    return Selection(predicate, found_positions(lake.engine, frame))
