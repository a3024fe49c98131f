"""The compaction kernel: some data files in, the same rows in new files out.

Comes in: whole data files with the deletes that apply. Goes out: rows of `REWRITTEN`, one for each
source in the order of its rows, with the positions that were left out, and one for each file
written. On failure every file of the task is removed. Memory is bounded by a batch and a row group
(by the write context's buffer where rows are sorted).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowlake.iceberg.deletion_vector import bitmap_of
from rowlake.model.files import WRITTEN_FILES
from rowlake.model.schema import FIELD_ID, Schema
from rowlake.model.task import POS_COLUMN, POS_COLUMN_ID, ScanTask
from rowlake.scan.kernel import scan_kernel
from rowlake.write.kernel import write_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.model.rewrite import Partition
    from rowlake.model.task import FileTask, ScanContext
    from rowlake.write.context import WriteContext

POSITION = pa.field(POS_COLUMN, pa.int64(), metadata={FIELD_ID: str(POS_COLUMN_ID).encode()})
REWRITTEN = pa.schema(
    [
        pa.field("task", pa.int32()),
        pa.field("place", pa.int32()),  # the number of a file among those of its task
        pa.field("source", pa.string()),
        pa.field("dropped", pa.binary()),  # a serialised bitmap; null: none
        pa.field("file", pa.struct(list(WRITTEN_FILES))),
    ]
)


@dataclass(frozen=True)
class RewriteTask:
    """Files to rewrite, in order; `number` tells the tasks of one compaction apart.

    `partitions` are encoded, one for each file.
    """

    number: int
    context: ScanContext
    write: WriteContext
    files: tuple[FileTask, ...]
    partitions: tuple[Partition, ...]


@dataclass
class _Work:
    sources: list[dict[str, Any]] = field(default_factory=list)


def rewrite_kernel(task: RewriteTask) -> Iterator[pa.RecordBatch]:
    """Rewrite the files of a task."""
    work = _Work()
    files = list(write_batches(task.write, _rows(task, work)))
    if work.sources:
        yield pa.RecordBatch.from_pylist(work.sources, REWRITTEN)
    for batch in files:
        struct = pa.StructArray.from_arrays(batch.columns, fields=list(WRITTEN_FILES))
        count = len(batch)
        yield pa.RecordBatch.from_arrays(
            [
                pa.repeat(pa.scalar(task.number, pa.int32()), count),
                pa.array(np.arange(count), pa.int32()),
                pa.nulls(count, pa.string()),
                pa.nulls(count, pa.binary()),
                struct,
            ],
            schema=REWRITTEN,
        )


def _rows(task: RewriteTask, work: _Work) -> Iterator[pa.RecordBatch]:
    for file in task.files:
        source: dict[str, Any] = {"task": task.number, "source": file.location}
        work.sources.append(source)
        yield from _deleted_noted(task, file, source) if file.deletes else _all_of(task, file)


def _all_of(task: RewriteTask, file: FileTask) -> Iterator[pa.RecordBatch]:
    return scan_kernel(ScanTask(task.context, (file,)))


def _deleted_noted(
    task: RewriteTask, file: FileTask, source: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of a file; note the positions of the others."""
    columns = task.context.projection.arrow
    context = replace(task.context, projection=Schema(columns.append(POSITION)))
    live = np.zeros(file.record_count, np.bool_)
    for batch in scan_kernel(ScanTask(context, (file,))):
        live[np.asarray(batch.column(len(columns)))] = True
        yield batch.select(columns.names)
    dropped = np.flatnonzero(~live)
    if len(dropped):
        source["dropped"] = bitmap_of(dropped).serialize()
