"""Queries over lake tables, run by Spark: each table's scan stands in the query as a DataFrame.

PySpark keeps a DataFrame that is named in a query's text visible for as long as the query needs
it, on classic and on Connect sessions, so no view outlives its statement.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rowlake.errors import InvalidStatementError
from rowlake.model.feed import Bounds
from rowlake.query.cached_rows import cached_table
from rowlake.query.change_feeds import feed_schema, on_table
from rowlake.query.partial_aggregates import cheapest_column, partial_frame
from rowlake.query.pushdown import Options, Scan, push_down
from rowlake.query.refusals import is_unknown_column, told_plainly
from rowlake.query.system_functions import with_system_functions
from rowlake.query.views import Expanded, ViewExpander
from rowlake.sqltext.lexer import Lexer, quote, readable
from rowlake.sqltext.literals import literal_of
from rowlake.sqltext.spark_types import type_text
from rowlake.verbs.inspect import metadata_table
from rowlake.verbs.read import Request, frame
from rowlake.verbs.wap import read_branch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rowlake.model.handle import TableHandle
    from rowlake.model.schema import Schema
    from rowlake.query.lookup import TableLookup
    from rowlake.query.shape import Reference, TimeTravel
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
    columns: Sequence[str] = (),
    statement: str | None = None,
) -> Any:
    """Return the DataFrame of a statement whose lake tables are read through rowlake.

    `given` are DataFrames that the text names, in backticks (see `fresh_name`). Tables are read as
    `lookup` has found them before, all others as they are now. `widened` gives those of the given
    DataFrames again that have not all columns of what they stand for. An unknown column is reported
    with the nearest of `columns`, where they are given. Errors show `statement`, of which the text
    is a part.
    """
    options = Options(
        lookup.names,
        arguments,
        f"__lake_{next(_numbers)}_",
        aggregates=True,
        schema_of=lambda target, reference: _schema_at(lookup, target, reference),
    )
    lookup.leave(given or ())
    expanded = without_views(lookup, text)
    lookup.leave(expanded.frames)
    rewritten = push_down(expanded.text, lookup, options)
    frames = {scan.view: frame_of(lookup, scan) for scan in rewritten.scans}
    frames.update(expanded.frames)
    frames.update(given or {})
    spark = lookup.workspace.spark
    final = with_system_functions(
        rewritten.text, lookup, lambda: list(map(_columns_of, frames.values()))
    )
    moved = bool(frames) or final != text or statement is not None
    with told_plainly(lookup.workspace, statement or text, moved=moved, columns=columns):
        if frames:
            try:
                return sql_over(spark, final, frames, arguments)
            except Exception as error:
                if not is_unknown_column(error):
                    raise
                # Once more with all columns, so that Spark suggests what the tables really have.
                wide = {scan.view: frame_of(lookup, _widened(scan)) for scan in rewritten.scans}
                frames.update({**wide, **widened()})
                return sql_over(spark, final, frames, arguments)
        return spark.sql(final, args=arguments) if arguments else spark.sql(final)


def without_views(lookup: TableLookup, text: str) -> Expanded:
    """Return a statement in which queries over tables stand for the views that it names."""
    if not lookup.may_have_views:
        return Expanded(text)
    return ViewExpander(lookup, partial(_run_apart, lookup), fresh_name).expanded(text)


def _run_apart(lookup: TableLookup, text: str, frames: dict[str, Any]) -> Any:
    return run_query(lookup, text, given=frames)


def _columns_of(frame: Any) -> dict[str, str]:
    """Return Spark's types of a DataFrame's columns."""
    return {each.name: type_text(each.dataType, each.name) for each in frame.schema.fields}


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
    if target.is_feed:
        return _feed(lookup, handle, scan)
    at = moment_of(lookup.workspace, handle, target, scan.travel)
    if target.metadata_table:
        snapshot_id = handle.view(**at).snapshot_id if at else None
        found = metadata_table(handle, target.metadata_table, snapshot_id=snapshot_id)
        return engine.from_arrow(found)
    if scan.aggregation is not None:
        return partial_frame(engine, handle, scan.aggregation, at)
    columns = scan.columns
    if not at and set(columns or ()) <= set(target.schema.arrow.names):
        cached = cached_table(lookup, handle, lambda: frame(handle, engine, Request()))
        if cached is not None:
            return cached
    if columns is not None and not columns:
        columns = cheapest_column(target.schema)
    # Spark evaluates the statement's own conditions; the predicate only leaves files and rows out.
    return frame(handle, engine, Request(columns, scan.predicate, **at))


def _feed(lookup: TableLookup, handle: TableHandle, scan: Scan) -> Any:
    """Return the frame of a change feed."""
    bounds = _bounds(lookup, handle, scan.target, scan.travel, scan.span_of_changes)
    columns = scan.columns
    if columns is not None:  # those of rows, as metadata columns are not
        schema = _feed_schema(handle, bounds)
        columns = tuple(name for name in columns if schema and name in schema.arrow.names)
    return lookup.workspace.change_feed(handle, bounds, columns, on_table(scan.predicate))


def _feed_schema(handle: TableHandle, bounds: Bounds) -> Schema | None:
    """Return the columns of a feed; None where only its end tells."""
    if bounds.end_ms is not None:
        return None
    at: dict[str, Any] = {"ref": bounds.branch}
    if bounds.end is not None:
        at = {"snapshot_id": bounds.end}
    return feed_schema(handle.view(**at).schema)


def _bounds(
    lookup: TableLookup,
    handle: TableHandle,
    target: Target,
    travel: TimeTravel | None,
    span: tuple[str, ...],
) -> Bounds:
    """Return where a feed starts and ends, by its arguments or by time travel."""
    given: dict[str, Any] = {}
    for role, text in zip(("start", "end"), span, strict=False):
        given |= _bound(lookup.workspace, handle, role, text)
    at = moment_of(lookup.workspace, handle, target, travel)
    if at:
        given |= {"end": handle.view(**at).snapshot_id}
    return Bounds(**given)


def _bound(workspace: Workspace, handle: TableHandle, role: str, text: str) -> dict[str, int]:
    """Return where a feed starts or ends: a snapshot, a branch or tag, or a time."""
    literal = literal_of(Lexer(text).all()[:-1], {})
    if literal is not None and literal.kind == "null":
        return {}
    if literal is not None and literal.kind in ("integer", "string"):
        value = str(literal.value)
        if value.isdecimal():
            return {role: int(value)}
        head = handle.head_of(value)
        if head is not None:
            return {role: head}
    return {f"{role}_ms": _time_value(workspace, text)}


def _handle(lookup: TableLookup, target: Target) -> TableHandle:
    handle = lookup.handle(target.table)
    if handle is None:
        raise InvalidStatementError(f"There is no table {readable(target.table)} any more.")
    return handle


def _schema_at(lookup: TableLookup, target: Target, reference: Reference) -> Schema | None:
    handle, travel = _handle(lookup, target), reference.travel
    if target.is_feed:
        span = reference.span_of_changes or ()
        return _feed_schema(handle, _bounds(lookup, handle, target, travel, span))
    return handle.view(**moment_of(lookup.workspace, handle, target, travel)).schema


def moment_of(
    workspace: Workspace, handle: TableHandle, target: Target, travel: TimeTravel | None
) -> dict[str, Any]:
    """Return which snapshot is meant, as `view_of` takes it; empty for the current one."""
    named = target.branch or target.tag or target.is_at_a_moment
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
        return travelled(workspace, handle, travel)
    branch = None if target.metadata_table else read_branch(handle, workspace.engine)
    return {"ref": branch} if branch else {}


def travelled(workspace: Workspace, handle: TableHandle, travel: TimeTravel) -> dict[str, Any]:
    """Return which snapshot AS OF means, as `view_of` takes it."""
    if travel.kind == "timestamp":
        return {"as_of_ms": _time_value(workspace, travel.text)}
    value = _version_value(workspace, travel.text)
    is_snapshot = any(str(one.snapshot_id) == value for one in handle.snapshots)
    if value.isdecimal() and (is_snapshot or value not in handle.refs):
        return {"snapshot_id": int(value)}
    return {"ref": value}


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
        raise InvalidStatementError(f"{text} is not a time.")
    return int(row[0]) // 1000
