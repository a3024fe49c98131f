"""Raw changes that Spark brings together by key, in packed Arrow frames.

Comes in: raw changes of one task. Goes out: frames, each of rows whose keys have one hash; then,
of all frames of some hashes, settled changes. Rows never become Spark's, so no type is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from rowlake.model.feed import CHANGE_COLUMNS
from rowlake.model.task import ROW_ID_COLUMN
from rowlake.model.transform import apply_transform
from rowlake.stream.changes_kernel import raw_changes
from rowlake.stream.changes_settle import Settling, at_path, settled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from rowlake.stream.changes_task import ChangeTask

    Buckets = NDArray[np.int64]

KEY, FRAME = "bucket", "frame"
SPREAD = pa.schema([pa.field(KEY, pa.int32()), pa.field(FRAME, pa.binary())])
_FRAME_ROWS = 262_144


def spread_changes(how: Settling, count: int, task: ChangeTask) -> Iterator[pa.RecordBatch]:
    """Yield a task's raw changes as frames of `count` buckets."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in raw_changes(task):
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _FRAME_ROWS:
            yield _frames(pa.Table.from_batches(waiting), how, count)
            waiting, rows = [], 0
    if waiting:
        yield _frames(pa.Table.from_batches(waiting), how, count)


def settle_frames(
    how: Settling, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the settled changes of all frames of a task."""
    frames = [
        pa.ipc.open_stream(frame.as_buffer()).read_all()
        for batch in batches
        for frame in batch.column(FRAME)
    ]
    if frames:
        yield from settled(pa.concat_tables(frames).cast(schema), how).to_batches()


def buckets(table: pa.Table, how: Settling, count: int) -> Buckets:
    """Return the bucket of each row; rows that must meet have one."""
    if how.by_row_id:
        ids = at_path(table, (ROW_ID_COLUMN,))
        by_id = np.asarray(apply_transform(f"bucket[{count}]", ids).fill_null(0))
        if not ids.null_count:
            return by_id.astype(np.int64)
        return np.where(np.asarray(ids.is_valid()), by_id, _of_row(table, count)).astype(np.int64)
    if how.keys:
        return _joined([at_path(table, path) for path in how.keys], table.num_rows, count)
    return _of_row(table, count)


def _of_row(table: pa.Table, count: int) -> Buckets:
    left_out = (*CHANGE_COLUMNS, ROW_ID_COLUMN)
    parts = [at_path(table, (name,)) for name in table.column_names if name not in left_out]
    return _joined(parts, table.num_rows, count)


def _joined(parts: Iterable[pa.Array], size: int, count: int) -> Buckets:
    found = np.zeros(size, np.int64)
    for part in parts:
        if _is_hashed(part.type):
            hashed = apply_transform(f"bucket[{1 << 30}]", part).fill_null(0)
            found = (found * 31 + np.asarray(hashed)) & 0xFFFF_FFFF
    return found % count


def _is_hashed(kind: pa.DataType) -> bool:
    """Return whether equal values surely have one hash; other columns do not count."""
    return bool(
        pt.is_integer(kind) or pt.is_string(kind) or pt.is_date32(kind) or pt.is_decimal128(kind)
    )


def _frames(table: pa.Table, how: Settling, count: int) -> pa.RecordBatch:
    numbers = buckets(table, how, count)
    order = np.argsort(numbers, kind="stable")
    edges = np.flatnonzero(np.diff(numbers[order])) + 1
    parts = np.split(order, edges)
    frames = [_packed(table.take(pa.array(rows))) for rows in parts]
    keys = pa.array([int(numbers[rows[0]]) for rows in parts], pa.int32())
    return pa.RecordBatch.from_arrays([keys, pa.array(frames, pa.binary())], schema=SPREAD)


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
