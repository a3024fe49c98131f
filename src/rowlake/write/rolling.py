"""Files that roll over at the target size, in row groups that are worth their overhead.

Comes in: batches of one partition (`RollingWriter`) or of many (`PartitionedWriter`). Goes out:
finished files in `TaskFiles`. Rows wait in memory until a row group is full: many small row groups
make files larger and reads slower. The size of a file is known exactly up to its last row group;
that of waiting rows is estimated from the compression seen so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from rowlake.write.output import OpenFile, TaskFiles
    from rowlake.write.partitions import Key

SAMPLE_ROWS = 32 * 1024
GUESSED_RATIO = 1.0  # high, so that the first trial comes before a file is too large


class Ratio:
    """Bytes in files per byte in memory, shared by the files of one task."""

    def __init__(self) -> None:
        self.in_memory = 0
        self.in_files = 0

    def add(self, in_memory: int, in_files: int) -> None:
        """Count what has been written."""
        self.in_memory += in_memory
        self.in_files += in_files

    @property
    def is_known(self) -> bool:
        """True once something has been written."""
        return self.in_memory > 0

    @property
    def value(self) -> float:
        """The ratio seen so far, a guess before anything is written."""
        return self.in_files / self.in_memory if self.is_known else GUESSED_RATIO


class RollingWriter:
    """Writes the rows of one partition into files of about the target size."""

    def __init__(self, files: TaskFiles, key: Key, ratio: Ratio) -> None:
        self._files, self._key, self._ratio = files, key, ratio
        self._target = files.context.target_file_size_in_bytes
        self._group_bytes = files.context.parquet.row_group_size_in_bytes
        self._group_rows = files.context.parquet.row_group_rows
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self.pending_bytes = 0
        self._file: OpenFile | None = None

    @property
    def is_open(self) -> bool:
        """True while a file of this partition is open."""
        return self._file is not None

    @property
    def file_size_in_bytes(self) -> int:
        """The bytes of the open file, 0 without one."""
        return self._file.size_in_bytes if self._file else 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows; write a row group when it is full, close the file when it is big enough."""
        start = 0
        per_row = max(batch.nbytes / max(len(batch), 1), 0.125)
        while start < len(batch):
            rows = min(self._room(per_row), len(batch) - start)
            part = batch.slice(start, rows) if rows < len(batch) else batch
            self._pending.append(part)
            self._pending_rows += rows
            self.pending_bytes += int(per_row * rows) + 1
            start += rows
            if self._room(per_row) <= 1:
                self._measure()
            if self._room(per_row) <= 1:
                self.flush()

    def _room(self, per_row: float) -> int:
        """Return how many rows still go into this row group, or into this file."""
        in_group = (self._group_bytes - self.pending_bytes) / per_row
        ratio = self._ratio.value
        waiting = self.pending_bytes * ratio
        in_file = (self._target - self.file_size_in_bytes - waiting) / (per_row * ratio)
        return max(int(min(in_group, in_file, self._group_rows - self._pending_rows)), 1)

    def _measure(self) -> None:
        """Replace the guess of the ratio by a trial before the first file is cut by it."""
        if not self._ratio.is_known and self.pending_bytes < self._group_bytes:
            sample = max(self._pending, key=len).slice(0, SAMPLE_ROWS)
            self._ratio.add(sample.nbytes, self._files.trial_size(sample))

    def flush(self) -> None:
        """Write the waiting rows as one row group; close the file at the target size."""
        if not self._pending:
            return
        if self._file is None:
            self._file = self._files.open(self._key, self._pending)
        before = self._file.size_in_bytes
        self._file.write(self._pending)
        self._ratio.add(self.pending_bytes, self._file.size_in_bytes - before)
        self._pending, self._pending_rows, self.pending_bytes = [], 0, 0
        if self._file.size_in_bytes >= self._target * 0.95:
            self.close()

    def close(self) -> None:
        """Write the waiting rows and finish the open file."""
        self.flush()
        if self._file is not None:
            file, self._file = self._file, None
            file.close()


class ClusteredWriter:
    """Writes partition after partition, one file open at a time.

    A partition that returns after another one opens another file: correct, but smaller.
    """

    def __init__(self, files: TaskFiles) -> None:
        self._files, self._ratio = files, Ratio()
        self._key: Key | None = None
        self._current: RollingWriter | None = None

    def add(self, key: Key, batch: pa.RecordBatch) -> None:
        """Take rows of one partition."""
        if self._current is None or key != self._key:
            self.close()
            self._key, self._current = key, RollingWriter(self._files, key, self._ratio)
        self._current.add(batch)

    def close(self) -> None:
        """Finish the open file."""
        if self._current is not None:
            self._current.close()
            self._current = None


class FanOutWriter:
    """Writes all partitions at once, within bounds of memory and of open files.

    Over the memory bound the largest row groups are written early; over the bound of open files
    the largest is finished.
    """

    def __init__(self, files: TaskFiles) -> None:
        self._files, self._ratio = files, Ratio()
        self._writers: dict[Key, RollingWriter] = {}
        self._open: set[Key] = set()
        self._pending_bytes = 0
        self._limit = files.context.buffer_size_in_bytes
        self._open_limit = files.context.open_files

    def add(self, key: Key, batch: pa.RecordBatch) -> None:
        """Take rows of one partition."""
        writer = self._writers.get(key)
        if writer is None:
            writer = self._writers[key] = RollingWriter(self._files, key, self._ratio)
        before = writer.pending_bytes
        writer.add(batch)
        self._pending_bytes += writer.pending_bytes - before
        self._note_open(key, writer)
        if self._pending_bytes > self._limit:
            self._relieve()

    def _relieve(self) -> None:
        """Write the largest row groups until half of the bound is free."""
        by_size = sorted(self._writers.items(), key=lambda each: -each[1].pending_bytes)
        for key, writer in by_size:
            if self._pending_bytes <= self._limit // 2:
                break
            self._pending_bytes -= writer.pending_bytes
            writer.flush()
            self._note_open(key, writer)

    def _note_open(self, key: Key, writer: RollingWriter) -> None:
        """Keep count of open files; finish the largest where there are too many."""
        if not writer.is_open:
            self._open.discard(key)
            return
        self._open.add(key)
        if len(self._open) > self._open_limit:
            largest = max(self._open, key=lambda each: self._writers[each].file_size_in_bytes)
            self._open.discard(largest)
            self._pending_bytes -= self._writers[largest].pending_bytes
            self._writers.pop(largest).close()

    def close(self) -> None:
        """Finish all files."""
        while self._writers:
            _, writer = self._writers.popitem()
            writer.close()
        self._pending_bytes = 0
