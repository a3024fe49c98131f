"""The delete kernel: one task's data files, matched and changed where they are read.

Comes in: data files with the deletes that apply, a predicate or positions found elsewhere, and how
to write. Goes out: one row per file that has matching rows (`OUTCOMES`), and one per file written.
A task reads only the predicate's columns of files without matches; what it rewrites is never
shuffled. Files are whole: the vector of a data file is made by one task.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowlake.model.files import WRITTEN_FILES, Content
from rowlake.model.schema import FIELD_ID, Schema
from rowlake.model.task import POS_COLUMN, POS_COLUMN_ID, ScanTask
from rowlake.rowlevel.marks import Marked, MarkWriter, Partition
from rowlake.rowlevel.strategy import Mode, Way, way_for
from rowlake.scan.deletes import load_deletes
from rowlake.scan.kernel import scan_kernel
from rowlake.storage.files import Storage
from rowlake.write.kernel import remove_written, write_batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from rowlake.model.task import FileTask, ScanContext
    from rowlake.write.context import WriteContext

_DELETE_KEY = pa.struct([("location", pa.string()), ("content_offset", pa.int64())])
OUTCOMES = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field("way", pa.string()),
        pa.field("matched", pa.int64()),
        pa.field("copied", pa.int64()),
        pa.field("replaced_deletes", pa.list_(_DELETE_KEY)),
        pa.field("file", pa.struct(list(WRITTEN_FILES))),
    ]
)
_POSITION = pa.field(POS_COLUMN, pa.int64(), metadata={FIELD_ID: str(POS_COLUMN_ID).encode()})


@dataclass(frozen=True)
class DeleteTask:
    """Some data files to delete rows from.

    `partitions` are the encoded partitions of `files`, in their order. `positions` has the rows
    to delete by location where they are known; None: those of the context's predicate.
    """

    context: ScanContext
    files: tuple[FileTask, ...]
    partitions: tuple[Partition, ...]
    mode: Mode
    write: WriteContext
    delete_folder: str
    format_version: int
    granularity: str
    positions: Mapping[str, NDArray[np.int64]] | None = None


@dataclass
class _Work:
    """What came of a task's files so far."""

    sources: list[dict[str, Any]] = field(default_factory=list)
    marked: list[Marked] = field(default_factory=list)
    written: list[pa.Table] = field(default_factory=list)


def delete_kernel(task: DeleteTask) -> Iterator[pa.RecordBatch]:
    """Delete the matching rows of a task's files; on failure remove what it wrote."""
    storage = Storage(task.context.io_properties)
    work = _Work()
    try:
        for file, partition in zip(task.files, task.partitions, strict=True):
            _change(task, file, partition, work, storage)
        writer = MarkWriter(task.delete_folder, task.format_version, task.granularity, storage)
        work.written.append(writer.write(work.marked))
    except BaseException:
        for files in work.written:
            remove_written(files, storage)
        raise
    yield from _outcomes(work)


def _change(
    task: DeleteTask, file: FileTask, partition: Partition, work: _Work, storage: Storage
) -> None:
    matched = _matched(task, file)
    if not len(matched):
        return
    deletes = load_deletes(task.context, file, storage)
    # Rows that equality deletes hide are not counted here: such a file is never taken for empty.
    live = file.record_count - len(deletes.positions)
    way = way_for(task.mode, matched=len(matched), live=live)
    outcome: dict[str, Any] = {"source": file.location, "way": way.value, "matched": len(matched)}
    if way is Way.REWRITE:
        written = pa.Table.from_batches(
            list(write_batches(task.write, _kept_rows(task, file, matched))), WRITTEN_FILES
        )
        work.written.append(written)
        outcome["copied"] = sum(written["record_count"].to_pylist())
    elif way is Way.MARK:
        every = np.union1d(deletes.positions, matched)
        work.marked.append(Marked(file.location, file.spec_id, partition, every))
        outcome["replaced_deletes"] = [
            {"location": old.location, "content_offset": old.content_offset}
            for old in file.deletes
            if old.content is Content.POSITION_DELETES
            and (old.is_vector or old.referenced_data_file == file.location)
        ]
    work.sources.append(outcome)


def _matched(task: DeleteTask, file: FileTask) -> NDArray[np.int64]:
    """Return the positions of the live rows of a file that match."""
    if task.positions is not None:
        return task.positions.get(file.location, np.empty(0, np.int64))
    context = replace(task.context, projection=Schema(pa.schema([_POSITION])), exact=True)
    batches = scan_kernel(ScanTask(context, (file,)))
    parts = [np.asarray(batch.column(0)) for batch in batches]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _kept_rows(
    task: DeleteTask, file: FileTask, matched: NDArray[np.int64]
) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of a file that do not match, with all that is to be written."""
    columns = task.write.schema.arrow
    context = replace(
        task.context,
        projection=Schema(columns.append(_POSITION)),
        predicate=None,
        exact=False,
    )
    for batch in scan_kernel(ScanTask(context, (file,))):
        positions = np.asarray(batch.column(len(columns)))
        gone = np.isin(positions, matched, assume_unique=True)
        rows = batch.select(columns.names)
        yield rows.filter(pa.array(~gone)) if gone.any() else rows


def _outcomes(work: _Work) -> Iterator[pa.RecordBatch]:
    if work.sources:
        yield pa.RecordBatch.from_pylist(work.sources, OUTCOMES)
    files = pa.concat_tables([WRITTEN_FILES.empty_table(), *work.written]).combine_chunks()
    for batch in files.to_batches():
        struct = pa.StructArray.from_arrays(batch.columns, fields=list(WRITTEN_FILES))
        columns = [pa.nulls(len(batch), kind.type) for kind in OUTCOMES][:-1]
        yield pa.RecordBatch.from_arrays([*columns, struct], schema=OUTCOMES)
