"""Statements of Delta's users: RESTORE, CLONE, CONVERT, GENERATE."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import InvalidStatementError
from rowlake.model.report import Report
from rowlake.query.run import travelled
from rowlake.sql.tables import need_table, new_name
from rowlake.sqltext.lexer import readable
from rowlake.sqltext.schema_json import schema_json
from rowlake.verbs.create import already_there

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.sql.statements import CloneTable, ConvertToDelta, Generate, Restore
    from rowlake.table import Table


def restore(lake: Lake, statement: Restore, table: Table) -> pa.Table:
    """Bring a table back to a version; return Delta's counts of files."""
    moment = travelled(lake.workspace, table.handle, statement.travel)
    if moment.get("ref") is not None:
        raise InvalidStatementError(f"{statement.travel.text} is no version of {table.name}.")
    report = table.restore(version=moment.get("snapshot_id"), as_of=moment.get("as_of_ms"))
    return one_row(report, "snapshot_id")


def clone(lake: Lake, statement: CloneTable) -> pa.Table | None:
    """Create a table from a version of another; return Delta's counts of files."""
    source = need_table(lake, statement.source)
    name = new_name(lake, statement.name)
    if lake.exists(name):
        if statement.if_not_exists:
            return None
        raise already_there(name)
    moment: dict[str, Any] = {}
    if statement.travel is not None:
        moment = travelled(lake.workspace, source.handle, statement.travel)
    if moment.get("ref") is not None:
        raise InvalidStatementError(f"{readable(statement.source)} has no {moment['ref']}.")
    report = source.clone(
        name,
        shallow=statement.shallow,
        version=moment.get("snapshot_id"),
        as_of=moment.get("as_of_ms"),
        location=statement.location,
        properties=statement.properties,
    )
    return one_row(report)


def convert(lake: Lake, statement: ConvertToDelta) -> None:
    """Make a folder of Parquet files a Delta table."""
    columns = statement.partition_by
    lake.convert_to_delta(
        statement.path,
        partition_by=None if columns is None else schema_json(columns, {}),
        statistics=statement.statistics,
    )


def generate(_lake: Lake, statement: Generate, table: Table) -> None:
    """Write the manifests of a table's files."""
    table.generate(statement.mode)


def one_row(report: Report, *left_out: str) -> pa.Table:
    """Return the counts of a report as one row."""
    shared = {item.name for item in fields(Report)} | set(left_out)
    names = [item.name for item in fields(report) if item.name not in shared]
    return pa.table({name: pa.array([getattr(report, name)], pa.int64()) for name in names})
