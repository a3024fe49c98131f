"""The engine: kernels over tasks and DataFrames, by Spark or in the driver.

A kernel is a module-level function, or a `functools.partial` of one; tasks are picklable. A Spark
job is `mapInArrow` over a range of task numbers, which works the same in local, cluster and Spark
Connect sessions. A task that Spark tries again or runs twice yields its rows once; kernels that
write use fresh names, so a losing try leaves orphans at worst.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.engine.daemons import end_daemons, java_pid
from rowlake.engine.jobs import is_remote, run_job
from rowlake.engine.local import is_tiny, run_here
from rowlake.engine.present import Presenter
from rowlake.engine.progress import ProgressOption, reporting
from rowlake.engine.session import active_session, make_session
from rowlake.engine.tally import note
from rowlake.engine.worker import (
    FRAMES,
    PAYLOAD_COLUMN,
    Job,
    from_frames,
    pack,
    run_stream,
    run_tasks,
    with_decimals,
    with_names,
)
from rowlake.model.work import Work
from rowlake.times import machine_zone
from rowlake.version import __version__

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession

    from rowlake.engine.datasource import Planner
    from rowlake.model.partition import SortField
    from rowlake.model.schema import Schema

Kernel = Callable[[Any], Iterable[pa.RecordBatch]]
StreamKernel = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]

# Tasks up to this size travel with the function, to every task; larger ones as rows, each to its
# own task only.
MAX_SHARED_BYTES = 1024 * 1024
ADAPTIVE = "spark.sql.adaptive.enabled"


@dataclass(frozen=True)
class Spread:
    """A kernel that runs first; what it yields is brought together by the column `key`."""

    kernel: StreamKernel | Kernel
    schema: pa.Schema
    key: str


class Engine:
    """Runs kernels; holds the Spark session, which is made at first use.

    `progress` is what jobs use that are not told otherwise. With a `source_planner` the session
    knows `spark.read.format("rowlake")` (`rowlake.engine.datasource`). `lake_opener` opens the lake
    again in a process of Spark's, for the session there.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        source_planner: Planner | None = None,
        lake_opener: Callable[[Any], Any] | None = None,
    ) -> None:
        self.lake_opener = lake_opener
        self.progress: ProgressOption = False
        self._given = spark
        self._source_planner = source_planner
        self._making = threading.RLock()
        self._made = False

    def in_session(self, spark: SparkSession) -> Engine:
        """Return an engine with the same settings for another session."""
        made = Engine(spark, source_planner=self._source_planner, lake_opener=self.lake_opener)
        made.progress = self.progress
        return made

    @property
    def spark(self) -> SparkSession:
        """The session: the user's, else the active one, else a local one made now."""
        with self._making:
            return self._session

    @cached_property
    def _session(self) -> SparkSession:
        session = self._given if self._given is not None else active_session()
        if session is None:
            session, self._made = make_session()
        if self._source_planner is not None:
            from rowlake.engine.datasource import register

            register(session, self._source_planner)
        return session

    @property
    def has_session(self) -> bool:
        """True once a session is in use; asking does not make one."""
        return "_session" in self.__dict__

    @property
    def may_be_remote(self) -> bool:
        """True unless the session is, or will be, one of this machine's own making."""
        is_there = self.has_session or self._given is not None or active_session() is not None
        return is_there or "SPARK_REMOTE" in os.environ

    @cached_property
    def slots(self) -> int:
        """How many tasks can run at once."""
        if is_remote(self.spark):
            return _remote_slots(self.spark)
        return int(self.spark.sparkContext.defaultParallelism)

    @property
    def is_one_machine(self) -> bool:
        """True where every task runs on the driver's machine and sees its disks."""
        if not self.has_session:
            return self._given is None and active_session() is None
        if is_remote(self.spark):
            return False
        master = str(self.spark.sparkContext.master)
        return master == "local" or master.startswith("local[")

    @property
    def parallelism(self) -> int:
        """How many tasks can run at once, in Spark or, without a session, in the driver."""
        return self.slots if self.has_session else os.cpu_count() or 1

    @property
    def has_time(self) -> bool:
        """True where the session knows the TIME type, or the one that would be made does."""
        if self.may_be_remote:
            return self._session_has_time
        from rowlake.engine.types import knows_time_type

        return knows_time_type()

    @cached_property
    def _session_has_time(self) -> bool:
        # pyspark is loaded by now: a session exists.
        from rowlake.engine.types import has_time_type

        return has_time_type(self.spark)

    @property
    def current_session(self) -> SparkSession | None:
        """The session that is in use or would be, None where one has to be made first."""
        found: SparkSession | None = self.__dict__.get("_session") or self._given
        return found or active_session()

    def setting(self, key: str) -> str | None:
        """Return a setting of the session; None where it is not set or no session is there yet."""
        session = self.current_session
        value = None if session is None else session.conf.get(key, None)
        return None if value is None else str(value)

    @property
    def time_zone(self) -> str:
        """The session's time zone, in which statements mean their times."""
        return str(self.spark.conf.get("spark.sql.session.timeZone"))

    @property
    def zone(self) -> str:
        """The time zone that a session has, or would have: the machine's own. Starts no session."""
        return self.setting("spark.sql.session.timeZone") or machine_zone()

    @property
    def case_sensitive(self) -> bool:
        """True where the session tells names apart by case."""
        return str(self.spark.conf.get("spark.sql.caseSensitive")).lower() == "true"

    def close(self) -> None:
        """Stop the session if it was made here; a user's session goes on."""
        if self._made:
            end_daemons(java_pid(self.spark))
            self.spark.stop()
        self._made = False
        for cached in ("_session", "slots", "_session_has_time"):
            self.__dict__.pop(cached, None)

    def run(
        self,
        kernel: Kernel,
        tasks: Sequence[Any],
        output: pa.Schema,
        *,
        size_in_bytes: int | None = None,
        label: str = "running tasks",
        progress: ProgressOption | None = None,
    ) -> pa.Table:
        """Run the kernel on every task and return all it yields as one table of `output`.

        Runs in threads of the driver where the tasks are few and `size_in_bytes`, what they will
        read, is small; else in Spark tasks, and rows come in no particular order.
        """
        shown = self.progress if progress is None else progress
        if is_tiny(tasks, size_in_bytes):
            with reporting(label, shown) as reporter:
                found = run_here(kernel, tasks, output, reporter)
            note(Work(driver_tasks=len(tasks)))
            return found
        frame = self._task_frame(Job(kernel, _schema_bytes(output)), tasks, _frames_type())
        frames = run_job(self.spark, frame.toArrow, label, shown)
        return from_frames(frames, output)

    def few_rows(
        self, kernel: Kernel, tasks: Sequence[Any], output: pa.Schema, *, size_in_bytes: int
    ) -> DataFrame:
        """Return the kernel's rows, which are few, as a DataFrame.

        Where the driver can do the work itself it is done at once; else it is lazy, by Spark.
        """
        if not is_tiny(tasks, size_in_bytes):
            return self.dataframe(kernel, tasks, output)
        found = self.run(kernel, tasks, output, size_in_bytes=size_in_bytes, label="aggregating")
        # Rows that are in one partition need no shuffle before they are grouped.
        return self.from_arrow(found).coalesce(1)

    def dataframe(self, kernel: Kernel, tasks: Sequence[Any], output: pa.Schema) -> DataFrame:
        """Return the kernel's rows over all tasks as a lazy DataFrame, one partition per task."""
        from rowlake.engine.types import spark_schema

        schema = spark_schema(output, has_time=self.has_time)
        if not tasks:
            return self.spark.createDataFrame([], schema)
        job = Job(
            kernel,
            _schema_bytes(output),
            presents=True,
            has_time=self.has_time,
            marks_errors=False,
        )
        return self._task_frame(job, tasks, schema)

    def consume(
        self,
        df: DataFrame,
        kernel: StreamKernel,
        output: pa.Schema,
        *,
        spread: Spread | None = None,
        label: str = "running tasks",
        progress: ProgressOption | None = None,
    ) -> pa.Table:
        """Run the kernel over the batches of every partition; return what it yields.

        With `spread` the kernel gets what that yields, all batches with one key in one task.
        """
        # pyspark is loaded by now: the frame is of it.
        from rowlake.engine.batches import bounded_by_rows
        from rowlake.engine.types import spark_schema

        shown = self.progress if progress is None else progress
        rows = df.schema
        job = Job(kernel, _schema_bytes(output))
        if spread is not None:
            df = _mapped(df, _packing(spread), spark_schema(spread.schema))
            df = self._brought_together(df, spread)
        frame = _mapped(df, job, _frames_type())
        with bounded_by_rows(self.spark, rows):
            frames = run_job(self.spark, frame.toArrow, label, shown)
        return from_frames(frames, output)

    def gather(
        self,
        spread: Spread,
        tasks: Sequence[Any],
        kernel: StreamKernel,
        output: pa.Schema,
        *,
        label: str = "running tasks",
        progress: ProgressOption | None = None,
    ) -> pa.Table:
        """Run `spread` on every task, then the kernel over what it yields, by key; return that.

        All batches with one key are in one stream of the kernel.
        """
        from rowlake.engine.types import spark_schema

        shown = self.progress if progress is None else progress
        schema = spark_schema(spread.schema)
        df = self._brought_together(self._task_frame(_packing(spread), tasks, schema), spread)
        frame = _mapped(df, Job(kernel, _schema_bytes(output)), _frames_type())
        frames = run_job(self.spark, frame.toArrow, label, shown)
        return from_frames(frames, output)

    def _brought_together(self, df: DataFrame, spread: Spread) -> DataFrame:
        # Adaptive execution sizes the tasks by bytes and splits heavy keys; without it Spark
        # ignores the hint, and every task would write files of every partition.
        is_adaptive = (self.setting(ADAPTIVE) or "true").lower() == "true"
        return df.hint("rebalance", spread.key) if is_adaptive else df.repartition(spread.key)

    def regrouped(
        self,
        spread: Spread,
        tasks: Sequence[Any],
        kernel: StreamKernel,
        output: pa.Schema,
        *,
        partitions: int,
    ) -> DataFrame:
        """Return what the kernel makes of `spread` over all tasks, by key, as a lazy DataFrame.

        All batches with one key are in one stream, however many they are.
        """
        from rowlake.engine.types import spark_schema

        packing = replace(_packing(spread), marks_errors=False)
        frames = self._task_frame(packing, tasks, spark_schema(spread.schema))
        job = Job(
            kernel,
            _schema_bytes(output),
            presents=True,
            has_time=self.has_time,
            marks_errors=False,
        )
        schema = spark_schema(output, has_time=self.has_time)
        return _mapped(frames.repartition(partitions, spread.key), job, schema)

    def with_types(
        self, df: DataFrame, kernel: StreamKernel, types: Mapping[int, pa.Field]
    ) -> DataFrame:
        """Return a DataFrame of which a kernel casts some columns, given by place; lazy."""
        from rowlake.engine.types import with_types

        job = Job(kernel, _schema_bytes(pa.schema([])), as_is=True)
        return _mapped(df, job, with_types(df.schema, types, has_time=self.has_time))

    def as_texts(self, df: DataFrame, places: Iterable[int], path: str) -> DataFrame:
        """Return the rows of a CSV file with some columns as the texts that stand there."""
        from pyspark.sql.types import StringType, StructField, StructType

        fields = list(df.schema.fields)
        for place in places:
            fields[place] = StructField(fields[place].name, StringType())
        reader = self.spark.read.option("header", True).option("enforceSchema", True)
        return reader.schema(StructType(fields)).csv(path)

    def ordered_by(self, df: DataFrame, keys: tuple[SortField, ...], schema: Schema) -> DataFrame:
        """Return the rows in tasks that hold one range of the keys each."""
        from rowlake.engine.distribute import ordered_by

        return ordered_by(df, keys, schema)

    def clustered(
        self,
        df: DataFrame,
        groups: Sequence[SortField],
        order: Sequence[SortField],
        schema: Schema,
    ) -> DataFrame:
        """Return the rows with those of equal `groups` in one task, sorted there by `order`."""
        from rowlake.engine.distribute import cluster

        return cluster(df, groups, order, schema, has_time=self.has_time)

    def repeatable(self, df: DataFrame) -> AbstractContextManager[None]:
        """Make a DataFrame return the same rows however often it is read inside the block."""
        from rowlake.engine.repeatable import repeatable

        return repeatable(df)

    def from_arrow(self, table: pa.Table) -> DataFrame:
        """Return an Arrow table as a DataFrame, in Spark's types; starts no session."""
        from rowlake.engine.types import spark_schema

        schema = spark_schema(table.schema, has_time=self.has_time)
        shown = self.presented(table)
        if self.may_be_remote and is_remote(self.spark):
            if not table.column_names:
                return self.spark.range(0).select()
            return self.spark.createDataFrame(shown, schema)
        from rowlake.engine.local_frame import LocalFrame

        return LocalFrame(lambda: self.spark, shown, schema)

    def raising_plainly(
        self, df: DataFrame, plainly: Callable[[Exception], Exception | None]
    ) -> DataFrame:
        """Return a query's DataFrame that raises what `plainly` makes of Spark's errors."""
        from rowlake.engine.query_frame import raising_plainly

        return raising_plainly(df, plainly)

    def table_frame(
        self,
        df: DataFrame,
        plainly: Callable[[Exception], Exception | None],
        *,
        count: Callable[[], int],
        rows: Callable[[], pa.Table],
    ) -> DataFrame:
        """Return a DataFrame that counts and collects by these functions; Connect's as it is."""
        if is_remote(self.spark) or not df.columns:
            return df
        from rowlake.engine.table_frame import Shortcuts, TableFrame

        return TableFrame(df, plainly, Shortcuts(count, lambda: self.presented(rows())))

    def presented(self, table: pa.Table) -> pa.Table:
        """Return an Arrow table in the types that Spark has."""
        presenter = Presenter(table.schema, has_time=self.has_time)
        return pa.Table.from_batches(map(presenter, table.to_batches()), presenter.schema)

    def read_parquet(
        self, files: Sequence[str], schema: Schema, history: Iterable[Schema] = ()
    ) -> DataFrame | None:
        """Return clean Parquet files through Spark's own reader; None where it would misread them.

        `history` has every schema that the files may have been written with. See
        `rowlake.engine.parquet` for when the answer is None.
        """
        from rowlake.engine.parquet import read_parquet

        return read_parquet(self.spark, files, schema, list(history))

    def _task_frame(self, job: Job, tasks: Sequence[Any], schema: Any) -> DataFrame:
        packed = tuple(pack(task) for task in tasks)
        count = len(packed)
        if sum(map(len, packed)) <= MAX_SHARED_BYTES:
            shared = replace(job, tasks=packed)
            numbers = self.spark.range(0, count, 1, count)
            return numbers.mapInArrow(_function(shared), schema)
        rows = pa.table({PAYLOAD_COLUMN: pa.array(packed, pa.binary())})
        # One input partition deals its rows out in turn, so every task gets a Spark task.
        spread = self.spark.createDataFrame(rows).coalesce(1).repartition(count)
        return spread.mapInArrow(_function(job), schema)


def _function(job: Job) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    return partial(run_tasks, __version__, pack(job))


def _mapped(df: DataFrame, job: Job, schema: Any) -> DataFrame:
    """Return what a stream kernel makes of a DataFrame's rows."""
    # pyspark is loaded by now: the frame is of it.
    from rowlake.engine.decimals import decimal_columns, with_whole_numbers

    decimals = decimal_columns(df.schema)
    if decimals:
        df = with_whole_numbers(df, decimals)
        job = replace(job, kernel=partial(with_decimals, decimals, job.kernel))
    if any("." in name or "`" in name for name in df.columns):
        # PySpark takes a dot in a name for a path; the kernel gets the names back.
        job = replace(job, kernel=partial(with_names, tuple(df.columns), job.kernel))
        df = df.toDF(*[f"c{number}" for number in range(len(df.columns))])
    return df.mapInArrow(partial(run_stream, __version__, pack(job)), schema)


def _packing(spread: Spread) -> Job:
    return Job(spread.kernel, _schema_bytes(spread.schema), as_is=True)


@cache
def _frames_type() -> Any:
    # A type, not its text, which Spark would parse again for each job. pyspark is loaded by now.
    from rowlake.engine.types import spark_schema

    return spark_schema(FRAMES)


def _schema_bytes(schema: pa.Schema) -> bytes:
    return bytes(schema.serialize())


def _remote_slots(spark: SparkSession) -> int:
    """Return the parallelism of a server, which Spark Connect tells only by what a range gets."""
    from pyspark.sql import functions

    numbers = spark.range(0, 10_000).select(functions.spark_partition_id().alias("partition"))
    return int(numbers.distinct().count())
