"""Kernels that order groups too large for one task: sample keys, split by range, write each range.

- `sample_kernel`: key columns alone of some files in, some rows' keys out;
- `split_kernel`: whole data files in; their live rows go to Arrow files, by range, some megabytes
  at a time; out come rows of `SPLIT`: a source with the positions that were left out, or a piece;
- `range_kernel`: the pieces of a file's ranges in, read range by range, ordered and written; rows
  of `REWRITTEN` out.

Memory is bounded by what is split at once and by the rows of a range; where a range has more than
expected (of rows that no key tells apart) its pieces are ordered some at a time.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowlake.maintain.compact.rewrite_kernel import live_rows, write_parts, written_rows
from rowlake.maintain.compact.row_order import by_number
from rowlake.model.task import ScanTask
from rowlake.rowlevel.staged import Piece, read_pieces
from rowlake.scan.kernel import scan_kernel
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rowlake.maintain.compact.rewrite_kernel import RewriteTask
    from rowlake.maintain.compact.row_keys import Keys
    from rowlake.maintain.compact.row_order import Ranges, RowOrder
    from rowlake.model.task import FileTask, ScanContext
    from rowlake.write.context import WriteContext

SPLIT_BYTES = 64 << 20
RANGE_BYTES = 256 << 20
SPLIT = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field("dropped", pa.binary()),
        pa.field("part", pa.int32()),
        pa.field("rows", pa.int64()),
        pa.field("size_in_bytes", pa.int64()),
        pa.field("location", pa.string()),
        pa.field("batch", pa.int32()),
    ]
)
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True)
class SampleTask:
    """Files of which a share of the rows is picked; the context projects the keys' columns."""

    context: ScanContext
    files: tuple[FileTask, ...]
    keys: Keys
    share: float
    number: int


@dataclass(frozen=True)
class SplitTask:
    """Files whose rows are split by range, into Arrow files of a folder."""

    rewrite: RewriteTask
    ranges: Ranges
    folder: str

    @property
    def files(self) -> tuple[FileTask, ...]:
        """The files that are read."""
        return self.rewrite.files


@dataclass(frozen=True)
class RangeTask:
    """The pieces of each range of one new file, in the order of the ranges."""

    number: int
    write: WriteContext
    order: RowOrder
    ranges: tuple[tuple[Piece, ...], ...]


def sample_kernel(task: SampleTask) -> Iterator[pa.RecordBatch]:
    """Yield the keys of rows picked at random; the same ones where a task is run again."""
    random = np.random.default_rng(task.number)
    for batch in scan_kernel(ScanTask(task.context, task.files)):
        picked = batch.filter(pa.array(random.random(len(batch)) < task.share))
        if len(picked):
            yield task.keys.of(picked, task.context.projection)


def split_kernel(task: SplitTask) -> Iterator[pa.RecordBatch]:
    """Split the rows of a task's files by range."""
    sources: list[dict[str, Any]] = []
    storage = Storage(task.rewrite.write.io_properties)
    for rows in _chunks(live_rows(task.rewrite, sources)):
        location = f"{task.folder}/{uuid.uuid4()}.arrow"
        parts = by_number(rows, task.ranges.numbers(rows))
        yield pa.RecordBatch.from_pylist(_spilled(location, parts, rows.schema, storage), SPLIT)
    if sources:
        yield pa.RecordBatch.from_pylist(sources, SPLIT)


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= SPLIT_BYTES:
            yield pa.concat_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.concat_batches(waiting)


def _spilled(
    location: str,
    parts: Iterable[tuple[int, pa.RecordBatch]],
    schema: pa.Schema,
    storage: Storage,
) -> list[dict[str, Any]]:
    found = []
    with (
        storage.open_output(location) as sink,
        pa.ipc.new_file(sink, schema, options=_COMPRESSED) as writer,
    ):
        for number, (part, rows) in enumerate(parts):
            writer.write_batch(rows)
            found.append(
                {
                    "part": part,
                    "rows": len(rows),
                    "size_in_bytes": rows.nbytes,
                    "location": location,
                    "batch": number,
                }
            )
    return found


def range_kernel(task: RangeTask) -> Iterator[pa.RecordBatch]:
    """Write one file of the rows of its ranges."""
    yield from written_rows(task.number, write_parts(task.write, [_rows_in_order(task)]))


def _rows_in_order(task: RangeTask) -> Iterator[pa.RecordBatch]:
    storage = Storage(task.write.io_properties)
    for pieces in task.ranges:
        for some in _bounded(pieces):
            held = read_pieces(some, task.order.schema.arrow, storage).to_batches()
            yield from task.order.in_order(pa.concat_batches(held))


def _bounded(pieces: tuple[Piece, ...]) -> Iterator[list[Piece]]:
    """Yield runs of pieces that fit into memory together."""
    waiting: list[Piece] = []
    size = 0
    for piece in pieces:
        if waiting and size + piece.size_in_bytes > RANGE_BYTES:
            yield waiting
            waiting, size = [], 0
        waiting.append(piece)
        size += piece.size_in_bytes
    if waiting:
        yield waiting
