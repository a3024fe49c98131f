"""Equality deletes of some data files found as positions: the kernel of the conversion.

Comes in: whole data files with all deletes that apply. Goes out: rows of `DELETES_WRITTEN`. Rows
are found by the scan itself, which reads the key columns alone, so they are exactly those that a
reader would not see. A data file without newly deleted rows gets no delete file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowlake.maintain.deletes.delete_writing import file_batches, source_batch
from rowlake.model.distinct import distinct
from rowlake.model.files import WRITTEN_FILES, Content
from rowlake.model.schema import FIELD_ID, Schema
from rowlake.model.task import (
    DELETED_COLUMN,
    DELETED_COLUMN_ID,
    POS_COLUMN,
    POS_COLUMN_ID,
    ScanTask,
)
from rowlake.scan.deletes import positions_in
from rowlake.scan.kernel import scan_kernel
from rowlake.write.position_deletes import DeletedPositions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rowlake.maintain.deletes.delete_writing import DeleteWriting
    from rowlake.model.files import DeleteFile
    from rowlake.model.task import FileTask, ScanContext
    from rowlake.storage.files import Storage
    from rowlake.write.position_deletes import Partition

    Positions = NDArray[np.int64]

_PROJECTION = Schema(
    pa.schema(
        [
            pa.field(POS_COLUMN, pa.int64(), metadata={FIELD_ID: str(POS_COLUMN_ID).encode()}),
            pa.field(
                DELETED_COLUMN, pa.bool_(), metadata={FIELD_ID: str(DELETED_COLUMN_ID).encode()}
            ),
        ]
    )
)


@dataclass(frozen=True)
class EqualityTask:
    """Some data files; `partitions` are encoded, one for each file."""

    writing: DeleteWriting
    context: ScanContext
    files: tuple[FileTask, ...]
    partitions: tuple[Partition, ...]


def equality_kernel(task: EqualityTask) -> Iterator[pa.RecordBatch]:
    """Find the positions of each file that equality deletes delete, and write delete files."""
    storage = task.writing.storage
    context = replace(task.context, projection=_PROJECTION, predicate=None, exact=False)
    deleted: list[DeletedPositions] = []
    sources: list[dict[str, Any]] = []
    for file, partition in zip(task.files, task.partitions, strict=True):
        source, found = _of_file(task, context, file, partition, storage)
        sources.append(source)
        deleted += [found] if found is not None else []
    files = task.writing.writer(storage).write(deleted) if deleted else WRITTEN_FILES.empty_table()
    yield from source_batch(sources)
    yield from file_batches(files, None)


def _of_file(
    task: EqualityTask,
    context: ScanContext,
    file: FileTask,
    partition: Partition,
    storage: Storage,
) -> tuple[dict[str, Any], DeletedPositions | None]:
    known = positions_in(file.deletes, file.location, storage)
    new = np.setdiff1d(_deleted(context, file), known, assume_unique=True)
    source: dict[str, Any] = {
        "source": file.location,
        "has_new_deletes": len(new) > 0,
        "rows": len(new),
    }
    if not len(new):
        return source, None
    replaced = _replaced(file)
    source["replaced_deletes"] = [
        {"location": old.location, "content_offset": old.content_offset} for old in replaced
    ]
    # A vector says all that is deleted: other position deletes of the file no longer apply.
    if not task.writing.as_vectors:
        known = positions_in(replaced, file.location, storage)
    every = distinct(new, known)
    return source, DeletedPositions(file.location, file.spec_id, partition, every)


def _deleted(context: ScanContext, file: FileTask) -> Positions:
    """Return the positions of all rows that a reader does not see."""
    parts = [np.zeros(0, np.int64)]
    for batch in scan_kernel(ScanTask(context, (file,))):
        positions, deleted = (np.asarray(column) for column in batch.columns)
        parts.append(positions[deleted.astype(bool)])
    return np.concatenate(parts)


def _replaced(file: FileTask) -> list[DeleteFile]:
    """Return the deletes that only this file has: the new ones hold their positions too."""
    return [
        old
        for old in file.deletes
        if old.content is Content.POSITION_DELETES
        and (old.is_vector or old.referenced_data_file == file.location)
    ]
