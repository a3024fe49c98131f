"""The compaction kernel: some data files in, the same rows in new files out.

Comes in: whole data files with the deletes that apply. Goes out: rows of `REWRITTEN`, one for each
source in the order of its rows, with the positions that were left out, and one for each file
written. On failure every file of the task is removed. Memory is bounded by the batches that are
read ahead and by a row group; where rows are ordered all rows of the task are in memory at once, so
it gets few enough of them.
"""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowlake.codecs.deletion_vector import bitmap_of
from rowlake.errors import CorruptTableError, RowlakeError
from rowlake.maintain.compact.ahead import read_ahead
from rowlake.model.files import WRITTEN_FILES
from rowlake.model.schema import FIELD_ID, Schema
from rowlake.model.task import POS_COLUMN, POS_COLUMN_ID, ScanTask
from rowlake.scan.kernel import row_count, scan_kernel
from rowlake.storage.files import Storage
from rowlake.write.kernel import write_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rowlake.maintain.compact.row_order import RowOrder
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
# Batches of fewer rows are joined, which copies them; those of files with deletes are large enough.
ENOUGH_ROWS = 16 * 1024


@dataclass(frozen=True)
class RewriteTask:
    """Files to rewrite, in order; `number` tells the tasks of one compaction apart.

    `partitions` are encoded, one for each file. About so many `rows` go into so many files
    (`parts`), with an `order` in that order.
    """

    number: int
    context: ScanContext
    write: WriteContext
    files: tuple[FileTask, ...]
    partitions: tuple[Partition, ...]
    order: RowOrder | None = None
    parts: int = 1
    rows: int = 0


def rewrite_kernel(task: RewriteTask) -> Iterator[pa.RecordBatch]:
    """Rewrite the files of a task."""
    sources: list[dict[str, Any]] = []
    with closing(read_ahead(live_rows(task, sources))) as rows:
        parts = _as_they_come(task, rows) if task.order is None else _ordered(task, rows)
        written = write_parts(task.write, parts)
    if sources:
        yield pa.RecordBatch.from_pylist(sources, REWRITTEN)
    yield from written_rows(task.number, written)


def _as_they_come(
    task: RewriteTask, rows: Iterable[pa.RecordBatch]
) -> Iterator[Iterable[pa.RecordBatch]]:
    """Yield the rows of each file, to be taken before the next; the last has all that is left."""
    left = iter(rows)
    size = max(-(-task.rows // task.parts), 1)
    rest: list[pa.RecordBatch] = []
    is_over = False

    def part() -> Iterator[pa.RecordBatch]:
        nonlocal is_over
        wanted = size
        while wanted:
            batch = rest.pop() if rest else next(left, None)
            if batch is None:
                is_over = True
                return
            yield batch.slice(0, wanted)
            if len(batch) > wanted:
                rest.append(batch.slice(wanted))
            wanted -= min(wanted, len(batch))

    for _ in range(task.parts - 1):
        if is_over:  # sizes in manifests may be false
            return
        yield part()
    yield chain(rest, left)


def _ordered(
    task: RewriteTask, rows: Iterable[pa.RecordBatch]
) -> Iterator[Iterable[pa.RecordBatch]]:
    held = list(rows)
    if held and task.order is not None:
        table = pa.concat_batches(held)
        yield from task.order.parts(table, max(min(task.parts, table.num_rows), 1))


def write_parts(
    context: WriteContext, parts: Iterable[Iterable[pa.RecordBatch]]
) -> list[pa.RecordBatch]:
    """Write each part into files of its own; on failure those of all parts are removed."""
    written: list[pa.RecordBatch] = []
    try:
        for part in parts:
            written.extend(write_batches(context, part, enough_rows=ENOUGH_ROWS))
    except BaseException:
        with suppress(RowlakeError):
            locations = [name for files in written for name in files["location"].to_pylist()]
            Storage(context.io_properties).delete(locations)
        raise
    return written


def written_rows(number: int, written: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the files that a task wrote, numbered, as rows of `REWRITTEN`."""
    place = 0
    for batch in written:
        struct = pa.StructArray.from_arrays(batch.columns, fields=list(WRITTEN_FILES))
        count = len(batch)
        yield pa.RecordBatch.from_arrays(
            [
                pa.repeat(pa.scalar(number, pa.int32()), count),
                pa.array(np.arange(place, place + count), pa.int32()),
                pa.nulls(count, pa.string()),
                pa.nulls(count, pa.binary()),
                struct,
            ],
            schema=REWRITTEN,
        )
        place += count


def live_rows(task: RewriteTask, sources: list[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task's files; note each file, and the positions of deleted rows."""
    for file in task.files:
        source: dict[str, Any] = {"task": task.number, "source": file.location}
        sources.append(source)
        yield from _deleted_noted(task, file, source) if file.deletes else _all_of(task, file)


def _all_of(task: RewriteTask, file: FileTask) -> Iterator[pa.RecordBatch]:
    count = 0
    for batch in scan_kernel(ScanTask(task.context, (file,))):
        count += batch.num_rows
        yield batch
    _validate_count(file, count)


def _validate_count(file: FileTask, count: int) -> None:
    """Check the manifest's count: it locates rows that others delete during the rewrite."""
    if count != file.record_count:
        cause = f"it has {count} rows, its manifest says {file.record_count}"
        advice = "Compact the other files only, or overwrite the partition with its own rows."
        raise CorruptTableError(file.location, cause, advice=advice)


def _deleted_noted(
    task: RewriteTask, file: FileTask, source: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of a file; note the positions of the others."""
    columns = task.context.projection.arrow
    context = replace(task.context, projection=Schema(columns.append(POSITION)))
    count = row_count(context, file, Storage(context.io_properties))
    _validate_count(file, count)
    live = np.zeros(count, np.bool_)
    for batch in scan_kernel(ScanTask(context, (file,))):
        positions = np.asarray(batch.column(len(columns)))
        if len(positions) and positions.max() >= len(live):
            cause = f"it has more rows than the {len(live):,} that its manifest says"
            raise CorruptTableError(file.location, cause)
        live[positions] = True
        yield batch.select(columns.names)
    dropped = np.flatnonzero(~live)
    if len(dropped):
        source["dropped"] = bitmap_of(dropped).serialize()
