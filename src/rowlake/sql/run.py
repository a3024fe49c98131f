"""Queries over lake tables, run by Spark: each table's scan stands in the query as a DataFrame.

PySpark keeps a DataFrame that is named in a query's text visible for as long as the query needs
it, on classic and on Connect sessions, so no view outlives its statement.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from rowlake.errors import InvalidStatementError
from rowlake.iceberg.metadata import view_of
from rowlake.sql.lexer import quote
from rowlake.sql.partials import cheapest_column, partial_frame
from rowlake.sql.pushdown import Options, Scan, push_down
from rowlake.sql.refusals import told_plainly
from rowlake.sql.session import Lookup, names_of
from rowlake.times import to_ms
from rowlake.verbs.read import Request, frame

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.model.schema import Schema
    from rowlake.sql.locate import Target
    from rowlake.sql.query import TimeTravel
    from rowlake.table import Table

_numbers = itertools.count()


def run_query(lake: Lake, text: str, arguments: Any = None) -> Any:
    """Return the DataFrame of a statement whose lake tables are read through rowlake."""
    lookup = Lookup(lake)
    options = Options(
        names_of(lake),
        arguments,
        f"__lake_{next(_numbers)}_",
        aggregates=True,
        schema_of=lambda target, travel: _schema_at(lake, lookup, target, travel),
    )
    rewritten = push_down(text, lookup, options)
    frames = {scan.view: frame_of(lake, lookup, scan) for scan in rewritten.scans}
    with told_plainly(lake, text, moved=bool(frames)):
        if frames:
            return sql_over(lake, rewritten.text, frames, arguments)
        return lake.spark.sql(text, args=arguments) if arguments else lake.spark.sql(text)


def sql_over(lake: Lake, text: str, frames: dict[str, Any], arguments: Any = None) -> Any:
    """Run a text in which the (quoted) keys of `frames` stand for DataFrames."""
    text = text.replace("{", "{{").replace("}", "}}")
    for view in frames:
        text = text.replace(quote(view), "{" + view + "}")
    return lake.spark.sql(text, args=arguments, **frames)


def frame_of(lake: Lake, lookup: Lookup, scan: Scan) -> Any:
    """Return the DataFrame of one scan."""
    target = scan.target
    table = _table(lookup, target)
    at = moment_of(lake, table, target, scan.travel)
    if target.metadata_table:
        return lake.engine.from_arrow(_metadata(table, target.metadata_table, at))
    if scan.aggregation is not None:
        return partial_frame(lake, table, scan.aggregation, _view_arguments(at))
    columns = scan.columns
    if columns is not None and not columns:
        columns = cheapest_column(target.schema)
    # Spark evaluates the statement's own conditions; the predicate only leaves files and rows out.
    request = Request(columns, scan.predicate, **_view_arguments(at))
    return frame(table.handle, lake.engine, request)


def _metadata(table: Table, name: str, at: dict[str, Any]) -> Any:
    if not at:
        return table.inspect(name)
    view = view_of(table.handle, **_view_arguments(at))
    return table.inspect(name, snapshot_id=view.snapshot_id)


def _view_arguments(at: dict[str, Any]) -> dict[str, Any]:
    """Return what `view_of` takes for a moment as `Table.df` takes it."""
    return {("as_of_ms" if key == "as_of" else key): value for key, value in at.items()}


def _table(lookup: Lookup, target: Target) -> Table:
    table = lookup.table(target.table)
    if table is None:
        raise InvalidStatementError(f"There is no table {target.table} any more.")
    return table


def _schema_at(
    lake: Lake, lookup: Lookup, target: Target, travel: TimeTravel | None
) -> Schema | None:
    table = _table(lookup, target)
    at = moment_of(lake, table, target, travel)
    return view_of(table.handle, **_view_arguments(at)).schema


def moment_of(
    lake: Lake, table: Table, target: Target, travel: TimeTravel | None
) -> dict[str, Any]:
    """Return which snapshot is meant, as the arguments of `Table.df`; empty for the current one."""
    if travel is not None and not target.is_current:
        raise InvalidStatementError(
            f"{table.name} is read at a snapshot by its name and by AS OF; use one of them."
        )
    if target.branch or target.tag:
        return {"ref": target.branch or target.tag}
    if target.snapshot_id is not None:
        return {"snapshot_id": target.snapshot_id}
    if target.as_of_ms is not None:
        return {"as_of": target.as_of_ms}
    return _travelled(lake, table, travel) if travel else {}


def _travelled(lake: Lake, table: Table, travel: TimeTravel) -> dict[str, Any]:
    if travel.kind == "timestamp":
        return {"as_of": _time_value(lake, travel.text)}
    value = (
        lake.spark.sql(f"SELECT {travel.text}").collect()[0][0]
        if not _is_plain(travel.text)
        else travel.text.strip("'\"")
    )
    if isinstance(value, int) or str(value).isdecimal():
        if str(value) in table.handle.metadata.refs:
            return {"ref": str(value)}
        return {"snapshot_id": int(value)}
    return {"ref": str(value)}


def _is_plain(text: str) -> bool:
    return text.isdecimal() or (text[:1] in "'\"" and "\\" not in text)


def _time_value(lake: Lake, text: str) -> int:
    """Return the ms since 1970 that Spark makes of an expression; whole numbers are seconds."""
    row = lake.spark.sql(f"SELECT unix_micros(CAST({text} AS TIMESTAMP)) AS micros").collect()[0]
    if row[0] is None:
        raise InvalidStatementError(f"TIMESTAMP AS OF {text} is not a time.")
    return to_ms(int(row[0]) // 1000)
