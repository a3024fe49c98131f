"""A writer for small feeds: rows are gathered, and each flush is one exactly-once commit.

Comes in: upserts and deletes, from any number of threads. Goes out: commits, by `flush`, after
`flush_rows` rows, and `flush_seconds` after the first row that waits. A crash loses only what was
not flushed. With an app id, a flush whose outcome was unknown is recognised when it is tried again,
and another writer with the same app id is an error.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rowlake.errors import InvalidStatementError
from rowlake.maintain.autopilot.auto import tidied
from rowlake.model.app_batch import AppBatch
from rowlake.model.result import Result
from rowlake.rowlevel.equality_writes import upsert_keys
from rowlake.sources.rows import source_of
from rowlake.stream.apply_change import Applying, apply_net
from rowlake.stream.apply_events import Event, net_of_events
from rowlake.stream.apply_rows import in_table_types, rows_in_driver
from rowlake.verbs.write import is_done, view_for_write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.verbs.write import WriteOptions


@dataclass(frozen=True)
class FlushPolicy:
    """When rows that wait are written without being asked for."""

    rows: int = 10_000
    seconds: float = 5.0

    def __post_init__(self) -> None:
        """Refuse what would never flush, or all the time."""
        if self.rows < 1 or self.seconds <= 0:
            raise InvalidStatementError(
                f"flush_rows is 1 or more and flush_seconds above 0, not {self.rows} and "
                f"{self.seconds}."
            )


@dataclass(frozen=True)
class _Batch:
    events: list[Event]
    number: int


class TableWriter:
    """Gathers changes of one table; made by `Table.writer`, used with `with`.

    `flushes` are the results of all flushes so far that wrote something, the latest 100.
    """

    def __init__(
        self,
        handle: TableHandle,
        engine: Engine,
        options: WriteOptions,
        *,
        keys: Sequence[str] | None,
        app_id: str | None,
        policy: FlushPolicy,
    ) -> None:
        view = view_for_write(handle, options.branch)
        self._handle, self._engine, self._options = handle, engine, options
        self._keys = upsert_keys(view, keys, "error").names
        self._app_id, self._policy, self._run_id = app_id, policy, str(uuid.uuid4())
        last = None
        if app_id is not None:
            last = handle.format.last_landed(handle, options.branch, app_id)
        self._began_after = -1 if last is None else last.batch_id
        self._next = self._began_after + 1
        self._waiting: list[Event] = []
        self._failed: _Batch | None = None
        self._state, self._flushing = threading.RLock(), threading.Lock()
        self._timer: threading.Timer | None = None
        self._error: BaseException | None = None
        self._closed = False
        self.flushes: list[Result] = []

    def __repr__(self) -> str:
        return f"TableWriter({self._handle.name}, {len(self._waiting)} rows wait)"

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(flush=error is None)

    # ------------------------------------------------------------------ rows

    def upsert(self, rows: Any) -> None:
        """Take rows in place of those with the same keys: one dict, or what `Table.append` takes.

        Columns that a row lacks keep their values.
        """
        found = self._rows([rows] if isinstance(rows, Mapping) else rows)
        self._take([Event(row) for row in found])

    def delete(self, keys: Any) -> None:
        """Take keys of rows to delete: dicts, values of the one key column, or tuples."""
        given = [keys] if isinstance(keys, (Mapping, str, int)) else keys
        rows = [self._key(one) for one in given] if isinstance(given, Sequence) else given
        self._take([Event(None, row) for row in self._rows(rows)])

    def _key(self, given: Any) -> Mapping[str, Any]:
        if isinstance(given, Mapping):
            return given
        values = given if isinstance(given, tuple) else (given,)
        if len(values) != len(self._keys):
            raise InvalidStatementError(
                f"A key of {self._handle.name} has the columns {', '.join(self._keys)}, not "
                f"{len(values)} values."
            )
        return dict(zip(self._keys, values, strict=True))

    def _rows(self, rows: Any) -> list[dict[str, Any]]:
        """Return rows in the table's types; what does not fit is refused here, not at a flush."""
        view = view_for_write(self._handle, self._options.branch)
        found = rows_in_driver(source_of(rows, self._engine, view.schema.arrow))
        return list(in_table_types(found, view).to_pylist())

    def _take(self, events: list[Event]) -> None:
        with self._state:
            self._validate_usable()
            self._waiting += events
            is_full = len(self._waiting) >= self._policy.rows
            if not is_full and self._timer is None and events:
                self._timer = threading.Timer(self._policy.seconds, self._flush_in_time)
                self._timer.daemon = True
                self._timer.start()
        if is_full:
            self.flush()

    # ------------------------------------------------------------------ flushing

    def flush(self) -> Result:
        """Write what waits, in one commit; return its result, or an empty one."""
        with self._flushing:
            with self._state:
                self._raise_earlier()
            result = Result("upsert")
            for batch in self._batches():
                result = self._write(batch)
            return result

    def close(self, *, flush: bool = True) -> None:
        """Flush, unless told not to, and take no more rows."""
        if self._closed:
            return
        try:
            if flush:
                self.flush()
        finally:
            with self._state:
                self._closed = True
                self._cancel()

    def _batches(self) -> Iterator[_Batch]:
        """Yield what is to be written: first what failed before, as the batch that it was."""
        with self._state:
            self._cancel()
        if self._failed is not None:  # only a flush changes it
            yield self._failed
        with self._state:
            batch = _Batch(self._waiting, self._next)
            if not batch.events:
                return
            self._waiting = []
            self._next += 1
        yield batch

    def _write(self, batch: _Batch) -> Result:
        """Commit a batch; one that fails is kept apart, since it may have landed."""
        self._failed = batch
        result = self._commit(batch)
        self._failed = None
        self.flushes = [*self.flushes[-99:], result]
        return result

    def _commit(self, batch: _Batch) -> Result:
        self._handle = self._handle.format.refresh(self._handle)
        options = self._options
        if self._app_id is not None:
            mark = AppBatch(self._app_id, batch.number, self._run_id, self._began_after)
            options = replace(options, app_batch=mark)
        done = is_done(self._handle, options, "upsert")
        if done is not None:
            return done
        view = view_for_write(self._handle, options.branch)
        known = {name for event in batch.events for name in event.row or ()}
        events = [
            event if event.row is None else event._replace(kept=frozenset(known - set(event.row)))
            for event in batch.events
        ]
        net = net_of_events(events, self._keys, view.schema)
        keys = upsert_keys(view, self._keys, "error")
        landed, result = apply_net(self._handle, self._engine, net, Applying(keys, options))
        self._handle = tidied(landed, self._engine, result)
        return result

    def _flush_in_time(self) -> None:
        try:
            self.flush()
        except BaseException as error:  # noqa: BLE001 - told to the next caller
            with self._state:
                self._error = error

    def _raise_earlier(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _validate_usable(self) -> None:
        if self._closed:
            raise InvalidStatementError(f"The writer of {self._handle.name} is closed.")
        self._raise_earlier()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
