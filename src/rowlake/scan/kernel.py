"""The scan kernel: a task's files to batches of the output schema.

Runs in Spark's Python workers and in driver threads. Memory is bounded by a batch, or by a row
group's deciding columns where a predicate is tested first; batches are of about
`context.batch_rows` rows, small ones joined across files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.scan.deletes import load_deletes
from rowlake.scan.failures import reading
from rowlake.scan.open import opened
from rowlake.scan.output import output_schema
from rowlake.scan.read import FileScan
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

    from rowlake.model.task import FileTask, ScanContext, ScanTask
    from rowlake.scan.deletes import Deletes
    from rowlake.scan.source import DataFileSource

__all__ = ["live_rows", "output_schema", "picked_rows", "row_count", "scan_kernel"]


def scan_kernel(task: ScanTask) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task's files, deletes applied, projected and filtered.

    Raises `CorruptTableError` with the location for a data or delete file that is missing,
    damaged or does not fit the table.
    """
    storage = Storage(task.context.io_properties)
    batches = (batch for file in task.files for batch in _file_batches(task.context, file, storage))
    return coalesced(batches, task.context.batch_rows)


def picked_rows(
    context: ScanContext, task: FileTask, positions: NDArray[np.int64]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file at these sorted positions, as the scan of the file would."""
    storage = Storage(context.io_properties)
    return coalesced(_file_batches(context, task, storage, positions), context.batch_rows)


def live_rows(context: ScanContext, task: FileTask, deletes: Deletes, storage: Storage) -> int:
    """Return how many rows of a file remain after the deleted positions.

    By the file's own count: a manifest must not decide that a file is empty.
    """
    rows = row_count(context, task, storage)
    return rows - len(deletes.in_range(0, rows))


def row_count(context: ScanContext, task: FileTask, storage: Storage) -> int:
    """Return how many rows a file has by its own count, deleted ones included."""
    with _opened_data(context, task, storage) as source:
        return sum(unit.num_rows for unit in source.units)


def _file_batches(
    context: ScanContext,
    task: FileTask,
    storage: Storage,
    only: NDArray[np.int64] | None = None,
) -> Iterator[pa.RecordBatch]:
    only = task.only if only is None else only
    if only is not None and not len(only):
        return
    deletes = load_deletes(context, task, storage)
    with _opened_data(context, task, storage) as source:
        with reading(task.location):
            scan = FileScan(context, task, source, deletes, only)
        batches = scan.batches()
        while True:
            with reading(task.location):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


def _opened_data(
    context: ScanContext, task: FileTask, storage: Storage
) -> AbstractContextManager[DataFileSource]:
    return opened(
        task.location,
        task.file_format,
        storage,
        context.table_schema,
        context.name_mapping,
        shares_footer=True,
    )


def coalesced(batches: Iterable[pa.RecordBatch], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches that are neither tiny nor larger than `batch_rows`."""
    pending: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if pending and count + batch.num_rows > batch_rows:
            yield _joined(pending)
            pending, count = [], 0
        if 2 * batch.num_rows < batch_rows:
            pending.append(batch)
            count += batch.num_rows
            continue
        if pending:
            yield _joined(pending)
            pending, count = [], 0
        for start in range(0, batch.num_rows, batch_rows):
            yield batch.slice(start, batch_rows)
    if pending:
        yield _joined(pending)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
