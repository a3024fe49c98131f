"""Position delete files of some partitions, merged: the kernel of `rewrite_position_delete_files`.

Comes in: delete files of one partition each, and the live data files that they may be about. Goes
out: rows of `DELETES_WRITTEN`. Positions of data files that are not named here are left out, and so
are those of a delete file that is older than the data file: neither ever applied. Data files are
never read. Memory is bounded by the positions of one group, or by `MOST_ROWS` where groups share a
file.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.codecs.position_delete import merged
from rowlake.maintain.deletes.delete_writing import file_batches, source_batch
from rowlake.model.files import WRITTEN_FILES
from rowlake.scan.deletes import positions_for
from rowlake.write.kernel import remove_written
from rowlake.write.position_deletes import DeletedPositions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from rowlake.maintain.deletes.delete_writing import DeleteWriting
    from rowlake.model.files import DeleteFile
    from rowlake.storage.files import Storage
    from rowlake.write.position_deletes import Partition

# Positions that are held at once, unless one data file has more.
MOST_ROWS = 20_000_000


@dataclass(frozen=True)
class NumberedDelete:
    """A position delete file with its data sequence number."""

    delete: DeleteFile
    data_sequence_number: int


@dataclass(frozen=True)
class PositionGroup:
    """Delete files of one partition; `data` are live data files with data sequence numbers.

    `data_sequence_number` is what the new delete files keep; `rows_per_file` is where a delete
    file of a partition is closed.
    """

    spec_id: int
    partition: Partition
    data: Mapping[str, int]
    deletes: tuple[NumberedDelete, ...]
    data_sequence_number: int
    rows_per_file: int


@dataclass(frozen=True)
class PositionTask:
    """Some groups to rewrite."""

    writing: DeleteWriting
    groups: tuple[PositionGroup, ...]

    @property
    def files(self) -> tuple[NumberedDelete, ...]:
        """The delete files that are read."""
        return tuple(delete for group in self.groups for delete in group.deletes)


def position_kernel(task: PositionTask) -> Iterator[pa.RecordBatch]:
    """Merge the deletes of each group; on failure remove what was written."""
    storage = task.writing.storage
    writer = task.writing.writer(storage)
    written = WRITTEN_FILES.empty_table()
    sources: list[dict[str, Any]] = []
    batches: list[pa.RecordBatch] = []
    try:
        for deleted, number in _sets(task, storage):
            files = writer.write(deleted)
            written = pa.concat_tables([written, files])
            sources += [{"source": one.location, "has_new_deletes": True} for one in deleted]
            batches += file_batches(files, number)
    except BaseException:
        if not task.writing.dry_run:
            remove_written(written, storage)
        raise
    yield from source_batch(sources)
    yield from batches


def _sets(task: PositionTask, storage: Storage) -> Iterator[tuple[list[DeletedPositions], int]]:
    """Yield what is written at once, with the data sequence number that it keeps."""
    if task.writing.as_vectors:
        yield from _vectors(task, storage)
        return
    for group in task.groups:
        deleted = _deleted(group, storage)
        whole = task.writing.granularity != "file"
        for some in _cut(deleted, group.rows_per_file) if whole else [deleted]:
            if some:
                yield some, group.data_sequence_number


def _vectors(task: PositionTask, storage: Storage) -> Iterator[tuple[list[DeletedPositions], int]]:
    """Yield deleted positions of several groups together: vectors share Puffin files."""
    waiting: list[DeletedPositions] = []
    rows = number = 0
    for group in task.groups:
        for one in _deleted(group, storage):
            waiting.append(one)
            rows += len(one.positions)
            number = max(number, group.data_sequence_number)
        if rows > MOST_ROWS:
            yield waiting, number
            waiting, rows, number = [], 0, 0
    if waiting:
        yield waiting, number


def _deleted(group: PositionGroup, storage: Storage) -> list[DeletedPositions]:
    parts: dict[str, list[NDArray[np.int64]]] = defaultdict(list)
    for one in group.deletes:
        for path, found in positions_for(one.delete, group.data, storage).items():
            if group.data[path] <= one.data_sequence_number:
                parts[path].append(found)
    return [
        DeletedPositions(path, group.spec_id, group.partition, merged(parts[path]))
        for path in sorted(parts)
    ]


def _cut(deleted: list[DeletedPositions], rows_per_file: int) -> list[list[DeletedPositions]]:
    """Return runs of about `rows_per_file` positions each; a data file is in one of them."""
    runs: list[list[DeletedPositions]] = [[]]
    rows = 0
    for one in deleted:
        if runs[-1] and rows + len(one.positions) > rows_per_file:
            runs.append([])
            rows = 0
        runs[-1].append(one)
        rows += len(one.positions)
    return runs
