"""Queries over lake tables, run by Spark: each table's scan stands in the query as a DataFrame.

PySpark keeps a DataFrame that is named in a query's text visible for as long as the query needs
it, on classic and on Connect sessions, so no view outlives its statement.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rowlake.errors import InvalidStatementError
from rowlake.query.partial_aggregates import cheapest_column, partial_frame
from rowlake.query.pushdown import Options, Scan, push_down
from rowlake.query.refusals import is_unknown_column, told_plainly
from rowlake.sqltext.lexer import Lexer, quote, readable
from rowlake.sqltext.literals import literal_of
from rowlake.verbs.inspect import metadata_table
from rowlake.verbs.read import Request, frame
from rowlake.verbs.wap import read_branch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rowlake.model.handle import TableHandle
    from rowlake.model.schema import Schema
    from rowlake.query.lookup import TableLookup
    from rowlake.query.shape import TimeTravel
    from rowlake.query.table_names import Target
    from rowlake.workspace import Workspace

_numbers = itertools.count()


def run_query(
    lookup: TableLookup,
    text: str,
    arguments: Any = None,
    given: Mapping[str, Any] | None = None,
    *,
    widened: Callable[[], Mapping[str, Any]] = dict,
) -> Any:
    """Return the DataFrame of a statement whose lake tables are read through rowlake.

    `given` are DataFrames that the text names, in backticks (see `fresh_name`). Tables are read as
    `lookup` has found them before, all others as they are now. `widened` gives those of the given
    DataFrames again that have not all columns of what they stand for.
    """
    options = Options(
        lookup.names,
        arguments,
        f"__lake_{next(_numbers)}_",
        aggregates=True,
        schema_of=lambda target, travel: _schema_at(lookup, target, travel),
    )
    rewritten = push_down(text, lookup, options)
    frames = {scan.view: frame_of(lookup, scan) for scan in rewritten.scans}
    frames.update(given or {})
    spark = lookup.workspace.spark
    with told_plainly(lookup.workspace, text, moved=bool(frames)):
        if frames:
            try:
                return sql_over(spark, rewritten.text, frames, arguments)
            except Exception as error:
                if not is_unknown_column(error):
                    raise
                # Once more with all columns, so that Spark suggests what the tables really have.
                wide = {scan.view: frame_of(lookup, _widened(scan)) for scan in rewritten.scans}
                frames.update({**wide, **widened()})
                return sql_over(spark, rewritten.text, frames, arguments)
        return spark.sql(text, args=arguments) if arguments else spark.sql(text)


def _widened(scan: Scan) -> Scan:
    """Return a scan of all columns, and of the metadata columns that the scan has."""
    if scan.columns is None or not scan.target.is_current:
        return scan
    every = dict.fromkeys((*scan.target.schema.arrow.names, *scan.columns))
    return replace(scan, columns=tuple(every))


def fresh_name() -> str:
    """Return a name for a DataFrame in a text that nothing else has."""
    return f"__given_{next(_numbers)}_"


def sql_over(spark: Any, text: str, frames: dict[str, Any], arguments: Any = None) -> Any:
    """Run a text in which the (quoted) keys of `frames` stand for DataFrames."""
    text = text.replace("{", "{{").replace("}", "}}")
    for view in frames:
        text = text.replace(quote(view), "{" + view + "}")
    return spark.sql(text, args=arguments, **frames)


def frame_of(lookup: TableLookup, scan: Scan) -> Any:
    """Return the DataFrame of one scan."""
    target, engine = scan.target, lookup.engine
    handle = _handle(lookup, target)
    at = moment_of(lookup.workspace, handle, target, scan.travel)
    if target.metadata_table:
        snapshot_id = handle.view(**at).snapshot_id if at else None
        found = metadata_table(handle, target.metadata_table, snapshot_id=snapshot_id)
        return engine.from_arrow(found)
    if scan.aggregation is not None:
        return partial_frame(engine, handle, scan.aggregation, at)
    columns = scan.columns
    if columns is not None and not columns:
        columns = cheapest_column(target.schema)
    # Spark evaluates the statement's own conditions; the predicate only leaves files and rows out.
    return frame(handle, engine, Request(columns, scan.predicate, **at))


def _handle(lookup: TableLookup, target: Target) -> TableHandle:
    handle = lookup.handle(target.table)
    if handle is None:
        raise InvalidStatementError(f"There is no table {readable(target.table)} any more.")
    return handle


def _schema_at(lookup: TableLookup, target: Target, travel: TimeTravel | None) -> Schema | None:
    handle = _handle(lookup, target)
    return handle.view(**moment_of(lookup.workspace, handle, target, travel)).schema


def moment_of(
    workspace: Workspace, handle: TableHandle, target: Target, travel: TimeTravel | None
) -> dict[str, Any]:
    """Return which snapshot is meant, as `view_of` takes it; empty for the current one."""
    named = target.branch or target.tag or target.snapshot_id or target.as_of_ms
    if travel is not None and named:
        raise InvalidStatementError(
            f"{handle.name} is read at a snapshot by its name and by AS OF; use one of them."
        )
    if target.branch or target.tag:
        return {"ref": target.branch or target.tag}
    if target.snapshot_id is not None:
        return {"snapshot_id": target.snapshot_id}
    if target.as_of_ms is not None:
        return {"as_of_ms": target.as_of_ms}
    if travel is not None:
        return _travelled(workspace, handle, travel)
    branch = None if target.metadata_table else read_branch(handle, workspace.engine)
    return {"ref": branch} if branch else {}


def _travelled(workspace: Workspace, handle: TableHandle, travel: TimeTravel) -> dict[str, Any]:
    if travel.kind == "timestamp":
        return {"as_of_ms": _time_value(workspace, travel.text)}
    value = _version_value(workspace, travel.text)
    if value in handle.refs or not value.isdecimal():
        return {"ref": value}
    return {"snapshot_id": int(value)}


def _version_value(workspace: Workspace, text: str) -> str:
    """Return a snapshot id, or the name of a branch or tag, as text."""
    literal = literal_of(Lexer(text).all()[:-1], {})
    if literal is not None and literal.kind in ("integer", "string"):
        return str(literal.value)
    question = f"SELECT {text}"
    with told_plainly(workspace, question, moved=True):
        return str(workspace.spark.sql(question).collect()[0][0])


def _time_value(workspace: Workspace, text: str) -> int:
    """Return the ms since 1970 that Spark makes of an expression; whole numbers are seconds."""
    question = f"SELECT unix_micros(CAST({text} AS TIMESTAMP)) AS micros"
    with told_plainly(workspace, question, moved=True):
        row = workspace.spark.sql(question).collect()[0]
    if row[0] is None:
        raise InvalidStatementError(f"TIMESTAMP AS OF {text} is not a time.")
    return int(row[0]) // 1000
