"""`rowlake changes`: what changed in a table, at once or as it happens.

`--follow` prints changes as commits land, one line each, until Ctrl-C. Failures that may pass
(storage or catalog out of reach) do not end it. Each change is printed once, also after a failure.
"""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rowlake.cli import options as o
from rowlake.cli.json_rows import plain
from rowlake.cli.output import Output, show
from rowlake.cli.watch import pause
from rowlake.errors import EngineError, InvalidStatementError, StorageError
from rowlake.model.printable import printable_json, printable_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from rowlake.table import Table

_PASSING = (StorageError, EngineError)
_Span = Annotated[str | None, typer.Option(metavar="SNAPSHOT|TIME")]


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(changes)


def changes(
    table: o.TableName,
    start: _Span = None,
    end: _Span = None,
    net: Annotated[bool, typer.Option("--net", help="One change of each row or key.")] = False,
    key: Annotated[
        list[str] | None, typer.Option("--key", help="Pair updates by this column; repeatable.")
    ] = None,
    branch: Annotated[str, typer.Option("--branch", help="Read this branch.")] = "main",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with new commits until Ctrl-C.")
    ] = False,
    interval: Annotated[float, typer.Option("--interval", min=0.05, help="Seconds.")] = 1.0,
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
) -> None:
    """Show what changed after a snapshot or time (--start) up to another (--end).

    Without --start, all of the history that is kept; with --follow, from now on.
    """
    asked: dict[str, Any] = {"keys": key or None, "net": net, "branch": branch}
    if follow and (end is not None or net or output is Output.PARQUET):
        raise InvalidStatementError("--follow has no end: leave --end, --net and parquet out.")
    with o.open_lake(warehouse, catalog, table=table) as lake:
        found = lake.table(table)
        if follow:
            feed = Follower(found, asked, _first(found, start, branch))
            keep_following(feed.poll, interval, output)
            return
        show(found.changes_arrow(**_bound("start", start), **_bound("end", end), **asked), output)


def _bound(role: str, text: str | None) -> dict[str, Any]:
    """Return a snapshot id, or a time."""
    if text is None:
        return {}
    return {role: int(text)} if text.isdecimal() else {f"{role}_as_of": text}


def _first(table: Table, start: str | None, branch: str) -> dict[str, Any]:
    """Return where a tail begins: as asked, else at the branch's head."""
    head = table.handle.head_of(branch)
    return _bound("start", start) if start is not None or head is None else {"start": head}


@dataclass
class Follower:
    """Reads what landed since it last looked."""

    table: Table
    asked: dict[str, Any]
    first: dict[str, Any]
    last: int | None = None

    def poll(self) -> pa.Table | None:
        """Return the changes of new commits; None where there is no new one."""
        head = self.table.handle.head_of(self.asked["branch"])
        if head is None or head == self.last or self.first == {"start": head}:
            return None
        start = self.first if self.last is None else {"start": self.last}
        found = self.table.changes_arrow(**start, end=head, **self.asked)
        self.last = head
        return found


def keep_following(
    poll: Callable[[], pa.Table | None],
    interval: float,
    output: Output,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Print changes as they come until Ctrl-C, which ends it cleanly."""
    failures = 0
    lines = _Lines(output)
    try:
        while True:
            try:
                found = poll()
            except _PASSING as error:
                failures += 1
                print(f"rowlake: will try again: {printable_lines(str(error))}", file=sys.stderr)
            else:
                failures = 0
                if found is not None:
                    lines.write(found)
            sleep(pause(interval, failures))
    except KeyboardInterrupt:
        print("rowlake: stopped following", file=sys.stderr)


class _Lines:
    """Writes rows one line each; CSV has its header again where columns change."""

    def __init__(self, output: Output) -> None:
        self._output, self._names = output, [""]

    def write(self, rows: pa.Table) -> None:
        """Write some rows, whole."""
        if not rows.num_rows:
            return
        if self._output is not Output.CSV:
            for row in rows.to_pylist():
                sys.stdout.write(self._line(row) + "\n")
        else:
            self._write_csv(rows)
        sys.stdout.flush()

    def _line(self, row: dict[str, Any]) -> str:
        if self._output is Output.JSON:
            return printable_json(json.dumps(row, default=plain, ensure_ascii=False))
        parts = (f"{name}={row[name]}" for name in row if name[:1] != "_")
        moment = row["_commit_timestamp"].isoformat(timespec="milliseconds")
        return printable_lines(f"{moment}  {row['_change_type']:<16} {'  '.join(parts)}")

    def _write_csv(self, rows: pa.Table) -> None:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        if rows.column_names != self._names:
            self._names = rows.column_names
            writer.writerow(self._names)
        for row in rows.to_pylist():
            writer.writerow(["" if value is None else plain(value) for value in row.values()])
        text = buffer.getvalue()
        sys.stdout.write(printable_lines(text) if sys.stdout.isatty() else text)
