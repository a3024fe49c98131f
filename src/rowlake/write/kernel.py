"""The write kernel: a stream of Arrow batches to data files.

Comes in: batches with the table's columns (any order, any layout that `conform` takes). Goes
out: one batch of `WRITTEN_FILES`, after the last row. Invariants: rows come out in the order they
came in per partition (sorted where the context asks); on any failure, and when the generator is
closed early, every file of this attempt is removed; memory is bounded by the context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.model.file_layout import operation_mark
from rowlake.model.key_index import with_indexes
from rowlake.write.conform import conform
from rowlake.write.output import TaskFiles
from rowlake.write.partitions import split_by_partition
from rowlake.write.rolling import ClusteredWriter, FanOutWriter
from rowlake.write.rules import checked
from rowlake.write.sort import sorted_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rowlake.storage.files import Storage
    from rowlake.write.context import WriteContext

PIECE_ROWS = 256 * 1024
PIECE_BYTES = 64 * 1024 * 1024
ENOUGH_ROWS = 64 * 1024


def write_batches(
    context: WriteContext,
    batches: Iterable[pa.RecordBatch],
    *,
    enough_rows: int = ENOUGH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Write the batches; yield the files written (nothing for no rows).

    Batches of fewer than `enough_rows` are joined first.
    """
    files = TaskFiles(context)
    try:
        bound = min(PIECE_BYTES, context.buffer_size_in_bytes)
        joined = pieces(batches, enough_rows, bound)
        conformed = (checked(conform(batch, context.schema), context.rules) for batch in joined)
        if context.sort:
            for run in sorted_runs(conformed, context):
                _write(context, files, run)
        else:
            _write(context, files, conformed)
        written = files.written()
    except BaseException as error:
        files.remove_all(error)
        raise
    if len(written):
        yield written


def _write(context: WriteContext, files: TaskFiles, batches: Iterable[pa.RecordBatch]) -> None:
    is_partitioned = not context.spec.is_unpartitioned
    fans_out = is_partitioned and context.fanout and not context.sort
    writer = FanOutWriter(files) if fans_out else ClusteredWriter(files)
    for piece in batches:
        for key, part in split_by_partition(piece, context.spec, context.schema):
            writer.add(key, files.stored(part))
    writer.close()


def pieces(
    batches: Iterable[pa.RecordBatch],
    enough_rows: int = ENOUGH_ROWS,
    size_in_bytes: int = PIECE_BYTES,
) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches that are worth casting and splitting, none of them empty.

    Small batches are joined, large ones cut; a batch with enough rows passes unchanged.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        is_enough = len(batch) >= enough_rows
        if waiting and (is_enough or not batch.schema.equals(waiting[0].schema)):
            yield _joined(waiting)
            waiting, rows, size = [], 0, 0
        for start in range(0, len(batch), PIECE_ROWS):
            part = batch.slice(start, PIECE_ROWS)
            waiting.append(part)
            rows += len(part)
            size += part.nbytes
            if is_enough or rows >= PIECE_ROWS or size >= size_in_bytes:
                yield _joined(waiting)
                waiting, rows, size = [], 0, 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def remove_attempt(context: WriteContext, storage: Storage) -> list[str]:
    """Remove all files of a write that failed; return those that could not be removed.

    A job that fails loses the answers of the tasks that had finished, so their files are found by
    listing: names hold the operation's id. Not for writes that may have been committed.
    """
    found = storage.list(context.locations.data)
    mark = operation_mark(context.operation_id)
    return storage.delete([each.location for each in found if mark in each.location])


def remove_written(files: pa.Table, storage: Storage) -> list[str]:
    """Remove written files that no snapshot refers to; return those that could not be removed."""
    return storage.delete(with_indexes(files.column("location").to_pylist()))
