"""Streams into a table: batches of Structured Streaming, each one exactly-once commit.

Comes in: a streaming DataFrame, and what to do with the rows of a batch. Goes out: the query. Every
batch is a `foreachBatch` call that writes with the app id, the batch id and the id of this run; a
batch that Spark replays after a crash is recognised and skipped, and a second query with the same
app id is stopped (`rowlake.commit.batches`).

In a classic session batches run in this process, and `query.results` has their latest results. In
a Spark Connect session they run in a Python process of the server, which opens the lake again: its
catalog and files must be within the server's reach. In both, `query.lastProgress` says what the
batch did to the table, under `observedMetrics["rowlake"]`.
"""

from __future__ import annotations

import uuid
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from rowlake.engine.quiet import shorten_batch_failures
from rowlake.errors import InvalidStatementError, RowlakeError
from rowlake.model.app_batch import AppBatch
from rowlake.query.refusals import plain_error
from rowlake.secrets import cause_without_secrets
from rowlake.stream.table_query import as_table_query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rowlake.model.handle import TableHandle
    from rowlake.model.result import Result
    from rowlake.stream.table_query import Metrics

    # Writes the rows of a batch to a table, with the options that mark the batch.
    WriteBatch: TypeAlias = Callable[[Any, Any, dict[str, Any]], Result]

_MOST_RESULTS = 100


def batch_option(app_id: str | None, batch: int | None) -> dict[str, Any]:
    """Return the batch of an app as an option of a write; nothing without an app."""
    if app_id is None and batch is None:
        return {}
    if app_id is None or batch is None:
        raise InvalidStatementError("app_id and batch go together: give both, or neither.")
    return {"app_batch": AppBatch(app_id, batch)}


@dataclass(frozen=True)
class StreamRun:
    """One run of a query into a table."""

    app_id: str
    run_id: str
    began_after: int

    @classmethod
    def begun(cls, handle: TableHandle, branch: str, app_id: str) -> StreamRun:
        """Begin a run: batches up to the last one that the table holds are not another run's."""
        AppBatch(app_id, 0)  # which refuses an app id that no mark can hold
        last = handle.format.last_landed(handle, branch, app_id)
        return cls(app_id, str(uuid.uuid4()), -1 if last is None else last.batch_id)

    def batch(self, number: int) -> AppBatch:
        """Return the batch of this number."""
        return AppBatch(self.app_id, number, self.run_id, self.began_after)


@dataclass(frozen=True)
class Sink:
    """Where a query writes: `open_table` returns the table in the process that runs the batches."""

    run: StreamRun
    open_table: Callable[[Any], Any]
    write: WriteBatch
    options: Mapping[str, Any] = field(default_factory=dict)
    results: BatchResults | None = None

    def __call__(self, frame: Any, number: int) -> None:
        """Write one batch."""
        options = {**self.options, "app_batch": self.run.batch(int(number))}
        try:
            result = self.write(self.open_table(frame), frame, options)
        except RowlakeError as error:
            self._ends_with(error)
            raise
        except Exception as error:
            found = plain_error(error)
            if found is None:
                raise
            self._ends_with(found)
            raise found from cause_without_secrets(error)
        if self.results is not None:
            self.results.add(int(number), result)

    def _ends_with(self, error: RowlakeError) -> None:
        """Keep the error that ends the query, for those who wait for it."""
        if self.results is not None:
            self.results.failure = error


class BatchResults:
    """The latest results of a query's batches, by their numbers."""

    def __init__(self) -> None:
        self._held: deque[tuple[int, Result]] = deque(maxlen=_MOST_RESULTS)
        self.failure: RowlakeError | None = None  # what ended the query

    def add(self, number: int, result: Result) -> None:
        """Take the result of a batch."""
        self._held.append((number, result))

    def __iter__(self) -> Iterator[Result]:
        return iter([result for _, result in self._held])

    def __len__(self) -> int:
        return len(self._held)

    def metrics(self, number: int) -> Mapping[str, Any] | None:
        """Return what a batch did, as a report has it; None for one that is not held."""
        found = [result for held, result in self._held if held == number]
        return found[-1].to_dict() if found else None


@dataclass(frozen=True)
class Start:
    """How a query is started: its folder, what `DataStreamWriter.trigger` takes, its name."""

    checkpoint: str
    trigger: Mapping[str, Any] | None = None
    name: str | None = None


def start(stream: Any, sink: Sink, how: Start, *, metrics: Metrics) -> Any:
    """Start the query of a sink; return Spark's `StreamingQuery` with `metrics` in its progress."""
    if not getattr(stream, "isStreaming", False):
        raise InvalidStatementError(
            "The rows of a stream come from a streaming DataFrame (spark.readStream, "
            "lake.read_stream); for other rows there are append, upsert and apply_changes."
        )
    if not how.checkpoint:
        raise InvalidStatementError("A stream needs a checkpoint: the path of a folder of its own.")
    writer = stream.writeStream.foreachBatch(sink.__call__)
    writer = writer.option("checkpointLocation", how.checkpoint)
    if how.trigger is not None:
        writer = writer.trigger(**how.trigger)
    if how.name is not None:
        writer = writer.queryName(how.name)
    shorten_batch_failures()
    query = writer.start()
    query.results = sink.results
    return as_table_query(query, metrics)
