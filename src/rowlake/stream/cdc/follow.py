"""Tables that follow tables of PostgreSQL: first a snapshot, then the log, exactly once.

Comes in: a `Database` and the tables to follow. Goes out: commits. Each table's last commit is
marked with the position in the log that it holds (the batch id of `AppBatch`), so a run that was
cut off goes on where it was: transactions up to that position are left out, and the slot is
confirmed only after all tables have committed. Transactions are whole: a commit holds all that one
did to a table. Added and widened columns are followed.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import InvalidStatementError
from rowlake.maintain.autopilot.auto import tidied
from rowlake.model.app_batch import AppBatch
from rowlake.stream.apply import ApplyChanges, apply_messages
from rowlake.stream.apply_events import Event
from rowlake.stream.apply_rows import in_table_types
from rowlake.stream.apply_schema import grown
from rowlake.stream.cdc.messages import Decoded, SourceColumn
from rowlake.verbs.write import WriteOptions, overwrite, view_for_write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.view import TableView
    from rowlake.stream.cdc.postgres import Database, Snapshot, SourceTable
    from rowlake.stream.cdc.postgres_log import Log, Transaction

_ASK_SECONDS = 1.0


@dataclass(frozen=True)
class Pace:
    """How much of the log is gathered for one commit."""

    rows: int = 50_000
    seconds: float = 2.0


@dataclass(frozen=True)
class Progress:
    """How far a run is: changes applied, commits made, bytes of the log that are behind."""

    changes: int = 0
    commits: int = 0
    snapshot_rows: int = 0
    lag_in_bytes: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Changes a second."""
        return self.changes / self.seconds if self.seconds else 0.0


@dataclass
class FollowedTable:
    """A table of the lake that follows one of the database."""

    source: SourceTable
    handle: TableHandle
    engine: Engine
    app_id: str
    run_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    began_after: int = -1
    lsn: int | None = None

    def __post_init__(self) -> None:
        """Look how far the table is."""
        if not self.source.keys:
            raise InvalidStatementError(
                f"Cannot follow {self.source.name}: it has no primary key, so nobody can tell "
                "which row a change is of."
            )
        last = self.handle.format.last_landed(self.handle, "main", self.app_id)
        if last is not None:
            self.lsn = self.began_after = last.batch_id

    def load(self, snapshot: Snapshot) -> int:
        """Replace all rows by those of a snapshot; return how many there are."""
        count = 0
        self.handle = grown(self.handle, self._view.schema, self.source.columns)
        view = self._view

        def batches() -> Iterator[pa.RecordBatch]:
            nonlocal count
            for part in snapshot.rows(self.source):
                count += len(part)
                yield from self._typed(part, view)

        schema = view.schema.arrow
        reader = pa.RecordBatchReader.from_batches(schema, batches())
        self.handle, _ = overwrite(self.handle, self.engine, reader, self._options(snapshot.lsn))
        self.lsn = snapshot.lsn
        return count

    def apply(self, transactions: Sequence[Transaction]) -> int:
        """Apply what transactions did to this table, in one commit; return how many changes."""
        events = [
            change.event
            for one in transactions
            if self.lsn is None or one.end_lsn > self.lsn
            for change in one.events
            if change.relation.full_name == self.source.name
        ]
        if not events:
            return 0
        lsn = transactions[-1].end_lsn
        wanted = ApplyChanges(self.source.keys, schema_evolution=True)
        found = Decoded(events, self._columns(transactions))
        self.handle = self.handle.format.refresh(self.handle)
        options = self._options(lsn)
        landed, result = apply_messages(self.handle, self.engine, found, wanted, options)
        self.handle = tidied(landed, self.engine, result)
        self.lsn = lsn
        return len(events)

    @property
    def _view(self) -> TableView:
        return view_for_write(self.handle, "main")

    def _options(self, lsn: int) -> WriteOptions:
        return WriteOptions(app_batch=AppBatch(self.app_id, lsn, self.run_id, self.began_after))

    def _typed(self, part: list[dict[str, Any]], view: TableView) -> list[pa.RecordBatch]:
        found = Decoded([Event(row) for row in part], self._known)
        rows = [event.row for event in found.typed(view.schema)]
        names = view.schema.arrow.names
        table = pa.table(
            [
                pa.array(
                    [(row or {}).get(name) for row in rows], view.schema.arrow.field(name).type
                )
                for name in names
            ],
            names=names,
        )
        return list(in_table_types(table, view).cast(view.schema.arrow).to_batches())

    @property
    def _known(self) -> dict[str, SourceColumn]:
        return {one.name: SourceColumn(one.name, one) for one in self.source.columns}

    def _columns(self, transactions: Sequence[Transaction]) -> dict[str, SourceColumn]:
        """Return the columns as the newest changes describe them."""
        relations = {
            id(change.relation): change.relation for one in transactions for change in one.events
        }
        own = [one for one in relations.values() if one.full_name == self.source.name]
        return {column.name: column for relation in own for column in relation.columns}


@dataclass
class Follower:
    """A run that keeps tables up to date with a database; `report` is told how far it is."""

    database: Database
    tables: list[FollowedTable]
    pace: Pace = field(default_factory=Pace)
    report: Callable[[Progress], None] | None = None
    progress: Progress = field(default_factory=Progress)

    def run(self, *, once: bool = False) -> Progress:
        """Load what has no rows yet, then follow the log: to where it ends now, or for good."""
        self._started = time.monotonic()
        self._load()
        until = self.database.log_end() if once else None
        with self.database.log() as log:
            self._follow(log, until)
        return self.progress

    def _load(self) -> None:
        new = [table for table in self.tables if table.lsn is None]
        if not new:
            return
        with self.database.snapshot() as snapshot:
            for table in new:
                rows = table.load(snapshot)
                self._tell(snapshot_rows=self.progress.snapshot_rows + rows)

    def _follow(self, log: Log, until: int | None) -> None:
        waiting: list[Transaction] = []
        rows, since, asked = 0, time.monotonic(), time.monotonic()
        while True:
            one = log.next()
            now = time.monotonic()
            if one is not None:
                since = since if waiting else now
                waiting.append(one)
                rows += len(one.events)
            is_idle = one is None and not log.is_inside
            is_due = rows >= self.pace.rows or now - since >= self.pace.seconds
            if waiting and (is_due or is_idle):
                self._commit(log, waiting)
                waiting, rows = [], 0
            if is_idle and until is not None and log.seen_lsn >= until and not waiting:
                log.confirm(max(until, log.seen_lsn))
                return
            if is_idle and now - asked >= _ASK_SECONDS:
                log.ask()
                asked = now
                self._tell(lag_in_bytes=0)

    def _commit(self, log: Log, waiting: list[Transaction]) -> None:
        """Commit to every table, then confirm: what is not confirmed comes again, and is known."""
        changes = commits = 0
        with log.kept_alive():
            for table in self.tables:
                done = table.apply(waiting)
                changes += done
                commits += bool(done)
        lsn = waiting[-1].end_lsn
        log.confirm(lsn)
        self._tell(
            changes=self.progress.changes + changes,
            commits=self.progress.commits + commits,
            lag_in_bytes=max(log.seen_lsn - lsn, 0),
        )

    def _tell(self, **facts: int) -> None:
        seconds = time.monotonic() - self._started
        self.progress = replace(self.progress, seconds=seconds, **facts)
        if self.report is not None:
            self.report(self.progress)
