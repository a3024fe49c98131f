"""What runs inside a Spark task: the kernel around which Spark moves Arrow batches.

Comes in: a job (pickled once by the driver) and the batches of one Spark partition. Goes out:
batches for Spark. Loaded in every Python worker, so it imports neither pyspark nor anything heavy.

Two ways in: `run_tasks` gets task numbers and looks the tasks up in the job, or gets the packed
tasks themselves in the batches when they are too large for the job; `run_stream` gets the rows of
a DataFrame. Two ways out: `as_frames` (one binary column of Arrow IPC streams, which loses no type
on its way through the JVM; for results that the driver wants) and a `Presenter` (rows for Spark).
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
import zipimport
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowlake.engine.failures import SHIPPING, TaskFailure
from rowlake.engine.present import Presenter
from rowlake.engine.sealed_errors import DRIVER_SEAL, Seal, signed
from rowlake.engine.sockets import answer_at_once
from rowlake.errors import EngineError, RowlakeError
from rowlake.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# The place of a decimal column, its precision and its scale.
DecimalColumn = tuple[int, int, int]

FRAME_COLUMN = "frame"
FRAMES = pa.schema([pa.field(FRAME_COLUMN, pa.binary())])
PAYLOAD_COLUMN = "payload"
_COMPRESSION = "zstd"
_FRAME_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Job:
    """What all the tasks of one Spark job share.

    - `kernel`: takes a task (or a stream of batches) and yields batches of `output`;
    - `tasks`: packed tasks by number; None where they come in the batches;
    - `presents`: rows go to Spark (`has_time`: its session knows TIME); else frames do, or,
      with `as_is`, what the kernel yields, which has Spark's types;
    - `marks_errors`: RowlakeErrors travel whole, for the driver; else users may read them, and
      they are only signed;
    - `seal`: what the driver knows errors of its own tasks by.
    """

    kernel: Callable[..., Iterable[pa.RecordBatch]]
    output: bytes
    tasks: tuple[bytes, ...] | None = None
    presents: bool = False
    as_is: bool = False
    has_time: bool = True
    marks_errors: bool = True
    seal: Seal = DRIVER_SEAL

    @property
    def output_schema(self) -> pa.Schema:
        """The schema of what the kernel yields."""
        return pa.ipc.read_schema(pa.py_buffer(self.output))


def pack(value: Any) -> bytes:
    """Return a job, a kernel or a task pickled and compressed."""
    raw = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    size = len(raw).to_bytes(8, "little")
    return size + bytes(pa.compress(raw, codec=_COMPRESSION, asbytes=True))


def unpack(packed: bytes) -> Any:
    """Return what `pack` was given.

    Only for bytes that a driver packed and handed to its own tasks: the function that Spark
    ships, or a column of the frame that the driver made for it. No row, file or message of anybody
    else gets here; a driver runs whatever code it likes in its tasks anyway.
    """
    size = int.from_bytes(packed[:8], "little")
    return pickle.loads(pa.decompress(packed[8:], size, codec=_COMPRESSION, asbytes=True))


def run_tasks(
    version: str, packed_job: bytes, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Run the tasks whose numbers (or packed selves) are in the batches."""
    _prepare(version)
    job: Job = unpack(packed_job)
    yield from _outgoing(job, _task_results(job, batches))


def run_stream(
    version: str, packed_job: bytes, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Run the kernel once over the batches of one partition."""
    _prepare(version)
    job: Job = unpack(packed_job)
    yield from _outgoing(job, job.kernel(batches))


def with_names(
    names: tuple[str, ...],
    kernel: Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]],
    batches: Iterator[pa.RecordBatch],
) -> Iterable[pa.RecordBatch]:
    """Run a stream kernel on batches whose columns get these names."""
    return kernel(batch.rename_columns(list(names)) for batch in batches)


def with_decimals(
    decimals: tuple[DecimalColumn, ...],
    kernel: Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]],
    batches: Iterator[pa.RecordBatch],
) -> Iterable[pa.RecordBatch]:
    """Run a stream kernel on batches some of whose whole numbers are decimals again."""
    return kernel(_with_decimals(decimals, batch) for batch in batches)


def _with_decimals(decimals: tuple[DecimalColumn, ...], batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = batch.columns
    for place, precision, scale in decimals:
        columns[place] = _decimals(columns[place], pa.decimal128(precision, scale))
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _decimals(whole: pa.Array, to: pa.DataType) -> pa.Array:
    """Return longs as decimals: two little-endian words a value, the upper one all sign."""
    if not len(whole):
        return pa.array([], to)
    validity, values = whole.buffers()
    longs = np.frombuffer(values, dtype="<i8", count=whole.offset + len(whole))
    words = np.empty((len(longs), 2), dtype="<i8")
    words[:, 0] = longs
    np.right_shift(longs, 63, out=words[:, 1])
    buffers = [validity, pa.py_buffer(words)]
    return pa.Array.from_buffers(to, len(whole), buffers, whole.null_count, whole.offset)


def _task_results(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for value in batch.column(0):
            packed = job.tasks[value.as_py()] if job.tasks is not None else value.as_py()
            yield from job.kernel(unpack(packed))


def _outgoing(job: Job, results: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        if job.presents:
            yield from map(Presenter(job.output_schema, has_time=job.has_time), results)
        elif job.as_is:
            yield from results
        else:
            yield from as_frames(results)
    except RowlakeError as error:
        if job.marks_errors:
            raise TaskFailure(error, job.seal) from error
        raise signed(error, job.seal) from error.__cause__


def as_frames(results: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches of FRAMES: the results as Arrow IPC streams, some megabytes in each."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in results:
        if batch.num_rows == 0:
            continue
        if waiting and (batch.schema != waiting[0].schema or size + batch.nbytes > _FRAME_BYTES):
            yield _frame(waiting)
            waiting, size = [], 0
        waiting.append(batch)
        size += batch.nbytes
    if waiting:
        yield _frame(waiting)


def _frame(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=_COMPRESSION)
    with pa.ipc.new_stream(sink, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    data = sink.getvalue()
    offsets = pa.array([0, data.size], pa.int32()).buffers()[1]
    return pa.RecordBatch.from_arrays(
        [pa.Array.from_buffers(pa.binary(), 1, [None, offsets, data])], schema=FRAMES
    )


def from_frames(frames: pa.Table, output: pa.Schema) -> pa.Table:
    """Return the results that came back in frames, as one table of `output`."""
    tables = [pa.ipc.open_stream(frame.as_buffer()).read_all() for frame in frames[FRAME_COLUMN]]
    return as_table(tables, output)


def as_table(tables: list[pa.Table], output: pa.Schema) -> pa.Table:
    """Return the tables as one of exactly the schema `output`."""
    cast = [table if table.schema == output else table.cast(output) for table in tables]
    return pa.concat_tables(cast) if cast else output.empty_table()


# What a worker does once. ------------------------------------------------------------------

_state = {"prepared": False}


def _prepare(version: str) -> None:
    """Make this worker process fit for rowlake's tasks, most of it once in its life."""
    if version != __version__:
        raise EngineError(
            f"Cannot run the task: the executor has rowlake {__version__}, the driver "
            f"{version}. {SHIPPING}"
        )
    if not _state["prepared"]:
        _state["prepared"] = True
        still_archives(os.environ.get("PYTHONPATH", ""))
        gc.collect()
        # PySpark collects garbage after every task; what is loaded by now is not garbage.
        gc.freeze()
    answer_at_once()


class _StillArchive:
    """A finder over an archive that does not change: `invalidate_caches` has nothing to do."""

    def __init__(self, importer: Any) -> None:
        self.find_spec = importer.find_spec


def still_archives(python_path: str) -> None:
    """Keep Python from reading Spark's archives again for every task.

    PySpark calls `importlib.invalidate_caches()` at the start of each task, on which every zip
    importer reads its archive's whole directory again: pyspark.zip, py4j's zip and Spark's core
    jar, which the JVM puts on PYTHONPATH, cost 0.15 s of CPU per task, and each large jar of
    `spark.jars.packages`, which Spark ships to Python too, as much again. They never change while
    a worker lives; archives of Python code that users ship are left alone.
    """
    archives = tuple(
        entry for entry in python_path.split(os.pathsep) if entry.endswith((".zip", ".jar", ".egg"))
    )

    def is_still(path: str) -> bool:
        return path.startswith(archives) or f"{path}{os.sep}".find(f".jar{os.sep}") > 0

    def hook(path: str) -> _StillArchive:
        if not is_still(path):
            raise ImportError(path)
        return _StillArchive(zipimport.zipimporter(path))

    sys.path_hooks.insert(0, hook)
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter) and is_still(path):
            sys.path_importer_cache[path] = _StillArchive(finder)
