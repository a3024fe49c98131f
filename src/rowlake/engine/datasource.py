"""`spark.read.format("rowlake")`: lake tables through Spark's Python data source API.

Spark plans such a read in a Python process of its own, so what knows tables is named, not held:
a `Planner`, a module-level function that takes the read's options and returns a `Relation`.
Spark's filters are not taken: a data source in Python gets them once for all queries that share a
DataFrame (up to Spark 4.3 at least), so that files which one query leaves out would be missing in
the others. `lake.sql` and `Table.df` prune.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import datasource as api

from rowlake.engine.present import Presenter
from rowlake.engine.sealed_errors import DRIVER_SEAL, Seal, signed
from rowlake.engine.types import has_time_type, spark_schema
from rowlake.errors import RowlakeError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

NAME = "rowlake"


class Relation(Protocol):
    """A table at one snapshot, as a read needs it."""

    @property
    def schema(self) -> pa.Schema:
        """The columns, in the table's types."""

    def plan(self) -> tuple[Callable[[Any], Iterable[pa.RecordBatch]], Sequence[Any]]:
        """Return a kernel and the tasks that hold every row."""


class Stream(Protocol):
    """A table as a streaming query reads it; offsets are dicts that JSON can hold."""

    @property
    def schema(self) -> pa.Schema:
        """The columns, in the table's types."""

    def initial(self) -> dict[str, Any]:
        """Return where a new query begins."""

    def latest(self, position: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return up to where the next batch reads, after a position (None: a new query)."""

    def plan(
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> tuple[Callable[[Any], Iterable[pa.RecordBatch]], Sequence[Any]]:
        """Return a kernel and the tasks of what is between two offsets."""


class Planner(Protocol):
    """Opens what a read's options name."""

    def __call__(self, options: Mapping[str, str]) -> Relation:
        """Return a table at one snapshot."""

    def stream(self, options: Mapping[str, str]) -> Stream:
        """Return a table as commits land in it."""


class RowlakeSource(api.DataSource):  # type: ignore[misc]
    """The data source; `register` makes a subclass with these set."""

    planner: Planner
    has_time = True
    seal: Seal

    @classmethod
    def name(cls) -> str:
        """Return what users write after `format`."""
        return NAME

    def schema(self) -> Any:
        """Return the table's columns in Spark's types."""
        found = self._stream() if self._has_changes() else self._relation()
        return spark_schema(found.schema, has_time=self.has_time)

    def reader(self, schema: Any) -> api.DataSourceReader:  # noqa: ARG002 - ours is the table's
        """Return a reader of the table."""
        return Reader(self._relation(), self.seal, has_time=self.has_time)

    def streamReader(self, schema: Any) -> api.DataSourceStreamReader:  # noqa: ARG002
        """Return a reader of what lands in the table."""
        return StreamReader(
            type(self).planner, dict(self.options), self.seal, has_time=self.has_time
        )

    def writer(self, schema: Any, overwrite: bool) -> Any:  # noqa: ARG002 - writes nothing
        """Say how rows are written: Spark would hand them over without the table's rules."""
        raise signed(
            UnsupportedFeatureError(
                'df.write.format("rowlake") needs an attached session: call rowlake.attach(spark) '
                'first, or write with df.writeTo there, or with lake.table("ns.t").append(df).'
            ),
            self.seal,
        )

    def _has_changes(self) -> bool:
        return str(self.options.get("changes", "false")).lower() == "true"

    def _stream(self) -> Stream:
        with _signing(self.seal):
            return type(self).planner.stream(dict(self.options))

    def _relation(self) -> Relation:
        with _signing(self.seal):
            return type(self).planner(dict(self.options))


class Partition(api.InputPartition):  # type: ignore[misc]
    """One task with its kernel."""

    def __init__(self, kernel: Any, task: Any) -> None:
        super().__init__(None)
        self.kernel, self.task = kernel, task


class Reader(api.DataSourceReader):  # type: ignore[misc]
    """Reads all rows."""

    def __init__(self, relation: Relation, seal: Seal, *, has_time: bool) -> None:
        self._relation, self._seal, self._has_time = relation, seal, has_time

    def partitions(self) -> list[Partition]:
        """Return one partition per task, or one of no rows where there is no file."""
        with _signing(self._seal):
            kernel, tasks = self._relation.plan()
        return [Partition(kernel, task) for task in tasks] or [Partition(_no_rows, None)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task, in Spark's types."""
        presenter = Presenter(self._relation.schema, has_time=self._has_time)
        with _signing(self._seal):
            yield from map(presenter, partition.kernel(partition.task))


class StreamPartition(api.InputPartition):  # type: ignore[misc]
    """One task with its kernel and the columns that it yields."""

    def __init__(self, kernel: Any, task: Any, schema: pa.Schema) -> None:
        super().__init__(None)
        self.kernel, self.task, self.schema = kernel, task, schema


class StreamReader(api.DataSourceStreamReader):  # type: ignore[misc]
    """Reads batches between offsets.

    Spark asks for the next offset without saying where the query is, so the reader remembers what
    it was last asked to read. After a restart Spark first asks for an empty batch at the place
    where the query stopped.
    """

    def __init__(
        self, planner: Planner, options: dict[str, str], seal: Seal, *, has_time: bool
    ) -> None:
        self._planner, self._options = planner, options
        self._seal, self._has_time = seal, has_time
        self._position: dict[str, Any] | None = None
        self._opened: Stream | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    @property
    def _stream(self) -> Stream:
        if self._opened is None:
            self._opened = self._planner.stream(self._options)
        return self._opened

    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query begins."""
        with _signing(self._seal):
            return self._stream.initial()

    def latestOffset(self) -> dict[str, Any]:
        """Return up to where the next batch reads."""
        with _signing(self._seal):
            return self._stream.latest(self._position)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[StreamPartition]:
        """Return one partition per task, none between equal offsets."""
        self._position = end
        with _signing(self._seal):
            stream = self._stream
            kernel, tasks = stream.plan(start, end)
        return [StreamPartition(kernel, task, stream.schema) for task in tasks]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task, in Spark's types."""
        presenter = Presenter(partition.schema, has_time=self._has_time)
        with _signing(self._seal):
            yield from map(presenter, partition.kernel(partition.task))


@contextmanager
def _signing(seal: Seal) -> Iterator[None]:
    """Sign errors, so that a driver that meets them knows them for its own."""
    try:
        yield
    except RowlakeError as error:
        raise signed(error, seal) from error.__cause__


def _no_rows(_: Any) -> Iterator[pa.RecordBatch]:
    return iter(())


def register(spark: Any, planner: Planner) -> None:
    """Make `spark.read.format("rowlake")` known to the session; registering again replaces."""
    bound = {
        "planner": staticmethod(planner),
        "has_time": has_time_type(spark),
        "seal": DRIVER_SEAL,
    }
    spark.dataSource.register(type("RowlakeSource", (RowlakeSource,), bound))
