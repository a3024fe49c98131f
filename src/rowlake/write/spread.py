"""Shuffle rows, packed, from the tasks that read them to those that write their partitions.

Comes in, on the one side: batches of rows. Goes out: batches of `SPREAD`, which an engine brings
together by `key`; on the other side the same rows come out of them again. A row of `SPREAD` is an
Arrow stream of a few thousand rows: shuffling few large values costs a fraction of shuffling single
rows. Invariant: all rows of one partition have one key. Several partitions may share one; writers
check every row's partition themselves.
"""

from __future__ import annotations

import itertools
import zlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowlake.write.conform import conform
from rowlake.write.kernel import PIECE_ROWS, pieces, write_batches
from rowlake.write.partitions import partition_codes, split_by_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rowlake.write.context import WriteContext
    from rowlake.write.partitions import Key

KEY_COLUMN, FRAME_COLUMN = "key", "frame"
SPREAD = pa.schema([pa.field(KEY_COLUMN, pa.int32()), pa.field(FRAME_COLUMN, pa.binary())])
# Frames go to Python by the thousand in one batch, which must stay far below 2 GB.
FRAME_BYTES = 256 * 1024
# More keys make frames of too few rows; fewer do not keep the writers of a cluster busy.
KEYS = 256
MOST_KEYS = 1 << 16
COMPRESSION = "lz4"
FEW_ROWS = 1024


def spread_batches(
    context: WriteContext, keys: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows, conformed to the table, as batches of `SPREAD` with at most this many keys.

    Raises what `conform` raises.
    """
    keys = min(keys, MOST_KEYS)
    for piece in pieces(batches):
        yield _packed(list(_by_key(context, keys, conform(piece, context.schema))))


def write_spread(
    context: WriteContext, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write the rows that batches of `SPREAD` hold; see `write_batches`."""
    # A key mostly stands for one partition: joined with others it would have to be split again.
    return write_batches(context, gathered_batches(batches), enough_rows=FEW_ROWS)


def gathered_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows that batches of `SPREAD` hold; each batch has the rows of one key."""
    for batch in batches:
        keys = batch.column(batch.schema.get_field_index(KEY_COLUMN)).to_numpy()
        frames = batch.column(batch.schema.get_field_index(FRAME_COLUMN))
        cuts = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)]
        for start, end in itertools.pairwise(cuts):
            same = (pa.ipc.open_stream(frames[at].as_buffer()) for at in range(start, end))
            yield from pieces(itertools.chain.from_iterable(same), PIECE_ROWS)


def _by_key(
    context: WriteContext, keys: int, batch: pa.RecordBatch
) -> Iterator[tuple[int, pa.RecordBatch]]:
    codes = partition_codes(batch, context.spec, context.schema)
    firsts = codes.first_rows()
    by_code = np.zeros(int(codes.rows.max()) + 1, np.int32)
    by_code[codes.rows[firsts]] = [key_number(codes.key(row), keys) for row in firsts.tolist()]
    by_row = by_code[codes.rows]
    for first, part in split_by_number(by_row.astype(np.uint16), batch):
        yield int(by_row[first]), part


def key_number(key: Key, keys: int) -> int:
    """Return the same number, below `keys`, for the same partition in every task."""
    number = 0
    for value in key:
        marked = b"\x00" if value is None else b"\x01" + value
        number = zlib.crc32(len(marked).to_bytes(4, "little") + marked, number)
    return number % keys


def _packed(parts: list[tuple[int, pa.RecordBatch]]) -> pa.RecordBatch:
    sink = pa.BufferOutputStream()
    numbers: list[int] = []
    ends = [0]
    for number, part in parts:
        rows = max(int(FRAME_BYTES * len(part) / max(part.nbytes, 1)), 1)
        for start in range(0, len(part), rows):
            _write_frame(sink, part.slice(start, rows))
            numbers.append(number)
            ends.append(sink.tell())
    offsets = pa.array(ends, pa.int32()).buffers()[1]
    frames = pa.Array.from_buffers(pa.binary(), len(numbers), [None, offsets, sink.getvalue()])
    return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int32()), frames], schema=SPREAD)


def _write_frame(sink: pa.NativeFile, batch: pa.RecordBatch) -> None:
    options = pa.ipc.IpcWriteOptions(compression=COMPRESSION)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
