"""`rowlake cdc`: tables that follow a PostgreSQL database, until Ctrl-C or once."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rowlake.cli.options import Catalog, Quiet, Shown, Warehouse, open_lake
from rowlake.cli.output import Output
from rowlake.errors import InvalidStatementError, TableNotFoundError
from rowlake.model.names import levels_of

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.stream.cdc.follow import FollowedTable, Pace, Progress
    from rowlake.stream.cdc.postgres import SourceTable

_SLOT_LENGTH = 63


def cdc(
    source: Annotated[
        str, typer.Option("--from", help="The database: postgresql://user@host/name.")
    ],
    source_table: Annotated[
        list[str] | None,
        typer.Option("--source-table", metavar="SCHEMA.TABLE", help="Can be repeated."),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option("--table", metavar="NS.TABLE", help="One for each source table."),
    ] = None,
    publication: Annotated[
        str | None, typer.Option("--publication", help="Follow all tables of this publication.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", help="For tables without --table.")
    ] = None,
    slot: Annotated[
        str | None, typer.Option("--slot", help="The replication slot; made if missing.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Stop where the log ends now.")] = False,
    warehouse: Warehouse = None,
    catalog: Catalog = None,
    output: Shown = Output.TABLE,
    quiet: Quiet = False,
) -> None:
    """Copy tables of PostgreSQL, then follow their changes; a run goes on where the last ended."""
    if not source_table and not publication:
        raise InvalidStatementError("Name what to follow: --source-table, or --publication.")
    name = slot or _slot_name(table or source_table or [], publication)
    with open_lake(warehouse, catalog, creates=True) as lake:
        told = _Told(output, quiet=quiet)
        try:
            progress = follow(
                lake,
                source,
                source_tables=source_table or [],
                tables=table or [],
                publication=publication or name,
                namespace=namespace,
                slot=name,
                once=once,
                report=told,
            )
        except KeyboardInterrupt:
            told.end()
            print("rowlake: stopped; the next run goes on from here", file=sys.stderr)
            return
        told.end()
        told.summary(progress)


def follow(
    lake: Lake,
    source: str,
    *,
    source_tables: list[str],
    tables: list[str],
    publication: str,
    namespace: str | None,
    slot: str,
    once: bool,
    report: Any = None,
    pace: Pace | None = None,
) -> Progress:
    """Follow tables of a database; tables of the lake that are missing are created."""
    from rowlake.stream.cdc.follow import Follower, Pace
    from rowlake.stream.cdc.postgres import Database

    if tables and len(tables) != len(source_tables):
        raise InvalidStatementError(
            f"Give a --table for each --source-table: there are {len(tables)} for "
            f"{len(source_tables)}."
        )
    database = Database(source, publication=publication, slot=slot)
    found = database.prepare(source_tables)
    names = [levels_of(name) for name in tables] or [_target(one, namespace) for one in found]
    followed = [
        _followed(lake, one, name, f"cdc.{slot}") for one, name in zip(found, names, strict=True)
    ]
    return Follower(database, followed, pace or Pace(), report).run(once=once)


def _target(source: SourceTable, namespace: str | None) -> tuple[str, ...]:
    levels = levels_of(namespace) if namespace else (source.namespace,)
    return (*levels, source.table)


def _followed(lake: Lake, source: SourceTable, name: tuple[str, ...], app_id: str) -> FollowedTable:
    from rowlake.stream.apply_schema import schema_json
    from rowlake.stream.cdc.follow import FollowedTable

    try:
        target = lake.table(name)
    except TableNotFoundError:
        lake.create_namespace(name[:-1], if_not_exists=True)
        target = lake.create_table(name, schema_json(source.columns, source.keys))
    return FollowedTable(source, target.handle, lake.engine, app_id)


def _slot_name(names: list[str], publication: str | None) -> str:
    text = publication or "_".join(names)
    return f"rowlake_{re.sub(r'[^a-z0-9_]', '_', text.lower())}"[:_SLOT_LENGTH]


class _Told:
    """Shows how far a run is: a line that is written over on a terminal, JSON lines if asked."""

    def __init__(self, output: Output, *, quiet: bool) -> None:
        self._output = output
        self._live = not quiet and output is Output.TABLE and sys.stderr.isatty()

    def __call__(self, progress: Progress) -> None:
        if self._live:
            sys.stderr.write(f"\r\x1b[K{_text(progress)}")
            sys.stderr.flush()

    def end(self) -> None:
        if self._live:
            sys.stderr.write("\n")

    def summary(self, progress: Progress) -> None:
        if self._output is Output.JSON:
            facts = {
                "changes": progress.changes,
                "commits": progress.commits,
                "snapshot_rows": progress.snapshot_rows,
                "lag_in_bytes": progress.lag_in_bytes,
                "seconds": round(progress.seconds, 3),
            }
            print(json.dumps(facts))
        else:
            print(_text(progress))


def _text(progress: Progress) -> str:
    return (
        f"{progress.snapshot_rows:,} rows copied, {progress.changes:,} changes in "
        f"{progress.commits:,} commits, {progress.rate:,.0f} changes/s, "
        f"{progress.lag_in_bytes:,} bytes behind"
    )
