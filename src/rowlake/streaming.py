"""The streaming verbs of `Table`: queries and writers whose batches land exactly once.

Thin, as `rowlake.table` is: what a batch does is the table's own verb, and the rest is
`rowlake.stream`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlake.deferred import deferred
from rowlake.errors import UnsupportedFeatureError
from rowlake.model import app_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rowlake.lake import Lake
    from rowlake.merge_builder import MergeBuilder
    from rowlake.model.handle import TableHandle
    from rowlake.model.result import Result
    from rowlake.stream import sink, writer
    from rowlake.stream.table_query import Metrics
    from rowlake.table import Table
    from rowlake.verbs.write import WriteOptions
else:  # loaded at their first use
    sink, writer = deferred("rowlake.stream", "sink writer")


class Streaming:
    """What a table takes from streams; a part of `Table`."""

    @property
    def identifier(self) -> tuple[str, ...]:
        """The name, in its parts (`Table`)."""
        raise NotImplementedError

    @property
    def lake(self) -> Lake:
        """The lake that the table is in (`Table`)."""
        raise NotImplementedError

    def for_write(self, given: Mapping[str, Any]) -> tuple[TableHandle, WriteOptions]:
        """Return the newest metadata and the options of a write (`Table`)."""
        raise NotImplementedError

    def stream_append(
        self,
        stream_df: Any,
        *,
        app_id: str,
        checkpoint: str,
        trigger: Mapping[str, Any] | None = None,
        query_name: str | None = None,
        **options: Any,
    ) -> Any:
        """Start a query that appends the rows of a stream, each batch exactly once.

        `app_id` names the query in the table for good, `checkpoint` is its folder; `trigger` is
        what `DataStreamWriter.trigger` takes (`{"availableNow": True}`), `query_name` what Spark
        calls the query. Options are those of every write.
        """
        return self._start(
            stream_df, _Append(), app_id, checkpoint, trigger, options, query_name=query_name
        )

    def stream_upsert(
        self,
        stream_df: Any,
        keys: Sequence[str] | None = None,
        *,
        app_id: str,
        checkpoint: str,
        sequence_by: str | None = None,
        apply_as_deletes: str | None = None,
        deletes: str = "auto",
        mode: str = "auto",
        trigger: Mapping[str, Any] | None = None,
        format: str | None = None,
        scd_type: int = 1,
        schema_evolution: bool = False,
        **options: Any,
    ) -> Any:
        """Start a query that applies the events of a stream by key, each batch exactly once.

        Arguments are those of `apply_changes`; `deletes="equality"` never reads the table.
        """
        arguments = {
            "keys": keys,
            "sequence_by": sequence_by,
            "apply_as_deletes": apply_as_deletes,
            "format": format,
            "scd_type": scd_type,
            "schema_evolution": schema_evolution,
        }
        # "auto" leaves the choice to the table's properties.
        chosen = {"deletes": deletes, "mode": None if mode == "auto" else mode}
        return self._start(
            stream_df, _Apply(arguments), app_id, checkpoint, trigger, {**options, **chosen}
        )

    def stream_merge(
        self,
        stream_df: Any,
        on: str | Sequence[str],
        clauses: Callable[[MergeBuilder], MergeBuilder] | None = None,
        *,
        app_id: str,
        checkpoint: str,
        prepare: Callable[[Any], Any] | None = None,
        trigger: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """Start a query that merges each batch of a stream, exactly once.

        `clauses` adds the clauses to the builder of a batch's MERGE; by default matched rows are
        updated and others inserted. `prepare` turns the rows of a batch into the rows to merge,
        for instance sums by key.
        """
        write = _Merge(on, clauses, prepare)
        return self._start(stream_df, write, app_id, checkpoint, trigger, options)

    def writer(
        self,
        keys: Sequence[str] | None = None,
        *,
        app_id: str | None = None,
        flush_rows: int = 10_000,
        flush_seconds: float = 5.0,
        **options: Any,
    ) -> writer.TableWriter:
        """Return a writer for small feeds: `with t.writer(keys=["id"]) as w: w.upsert(rows)`.

        Safe to use from several threads. Rows are written by `flush()`, after `flush_rows` of them
        and every `flush_seconds`, each time in one commit; `app_id` makes that exactly once.
        """
        handle, chosen = self.for_write(options)
        policy = writer.FlushPolicy(flush_rows, flush_seconds)
        return writer.TableWriter(
            handle, self.lake.engine, chosen, keys=keys, app_id=app_id, policy=policy
        )

    def _start(
        self,
        stream_df: Any,
        write: sink.WriteBatch,
        app_id: str,
        checkpoint: str,
        trigger: Mapping[str, Any] | None,
        options: Mapping[str, Any],
        *,
        query_name: str | None = None,
    ) -> Any:
        handle, chosen = self.for_write(options)
        run = sink.StreamRun.begun(handle, chosen.branch, app_id)
        if _is_remote(stream_df):
            reopen = self.lake.engine.lake_opener
            if reopen is None:
                raise UnsupportedFeatureError(
                    f"A stream of Spark Connect into {handle.name} runs on the server, which "
                    "cannot open this lake again. Open it with rowlake.connect."
                )
            made = sink.Sink(run, _Reopened(reopen, self.identifier), write, dict(options))
            metrics: Metrics = _Committed(self.for_write, chosen.branch, app_id)
        else:
            results = sink.BatchResults()
            here = _InSession(self.lake, self.identifier)
            made = sink.Sink(run, here, write, dict(options), results)
            metrics = results.metrics
        named = sink.Start(checkpoint, trigger, query_name)
        return sink.start(stream_df, made, named, metrics=metrics)


def _is_remote(frame: Any) -> bool:
    return type(frame).__module__.startswith("pyspark.sql.connect")


@dataclass
class _InSession:
    """Has the table in the session of a query's batches, which is a copy of the user's."""

    lake: Lake
    identifier: tuple[str, ...]
    session: Any = None
    table: Any = None

    def __call__(self, frame: Any) -> Any:
        if self.session is None or self.session is not frame.sparkSession:
            self.session = frame.sparkSession
            self.table = self.lake.in_session(self.session).table(self.identifier)
        return self.table


@dataclass(frozen=True)
class _Reopened:
    """Opens the table in the process of a Spark Connect server that runs the batches."""

    open_lake: Callable[[Any], Any]
    identifier: tuple[str, ...]

    def __call__(self, frame: Any) -> Any:
        return self.open_lake(frame.sparkSession).table(self.identifier)


@dataclass(frozen=True)
class _Committed:
    """Says what a batch did by the summary of its snapshot, where another process wrote it."""

    newest: Callable[[Mapping[str, Any]], tuple[TableHandle, WriteOptions]]
    branch: str
    app_id: str

    def __call__(self, number: int) -> Mapping[str, Any] | None:
        handle, _ = self.newest({})
        for snapshot in handle.ancestors(handle.head_of(self.branch)):
            batch = app_batch.batch_of(snapshot.summary)
            if batch is not None and (batch.app_id, batch.batch_id) == (self.app_id, number):
                return {
                    "operation": snapshot.operation,
                    "snapshot_id": snapshot.snapshot_id,
                    **{
                        name.replace("-", "_"): int(value)
                        for name, value in snapshot.summary.items()
                        if name.startswith(("added-", "deleted-")) and value.isdecimal()
                    },
                }
        return None


@dataclass(frozen=True)
class _Append:
    def __call__(self, table: Table, frame: Any, options: dict[str, Any]) -> Result:
        return table.append(frame, **options)


@dataclass(frozen=True)
class _Apply:
    arguments: Mapping[str, Any]

    def __call__(self, table: Table, frame: Any, options: dict[str, Any]) -> Result:
        return table.apply_changes(frame, **self.arguments, **options)


@dataclass(frozen=True)
class _Merge:
    on: str | Sequence[str]
    clauses: Callable[[MergeBuilder], MergeBuilder] | None
    prepare: Callable[[Any], Any] | None

    def __call__(self, table: Table, frame: Any, options: dict[str, Any]) -> Result:
        source = frame if self.prepare is None else self.prepare(frame)
        builder = table.merge(source, self.on, **options)
        if self.clauses is None:
            builder = builder.when_matched_update_all().when_not_matched_insert_all()
        else:
            builder = self.clauses(builder)
        return builder.execute()
