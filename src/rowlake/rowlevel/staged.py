"""Source rows, staged once: read by the tasks that change the target.

Comes in: batches of source rows, and how they are split into parts. Goes out: one row of `STAGED`
per part and staging task; few bytes stay inside it, more go to an Arrow file. A source that gives
other rows when it is read again is read once, here.

Parts are what target files look for their matches in: one for all files, or one per partition of
the target (`part_of_partition`), or one per some target files (`part_of_location`).
"""

from __future__ import annotations

import uuid
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.schema import Schema
from rowlake.model.transform import apply_transform
from rowlake.model.values import encode
from rowlake.rowlevel.unique import unique_rows
from rowlake.scan.kernel import scan_kernel
from rowlake.scan.plain import plain_rows
from rowlake.secrets import redacted_repr
from rowlake.storage.files import Storage
from rowlake.write.conform import conform
from rowlake.write.partitions import split_by_partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from rowlake.model.partition import PartitionSpec
    from rowlake.model.task import ScanTask
    from rowlake.rowlevel.unique import Keys
    from rowlake.scan.plain import PlainTask

PARTS = 1024
WHOLE = 0  # the only part where rows are not split
NO_FILE = -1  # rows that belong to no target file
_INLINE_BYTES = 256 * 1024
_CHUNK_BYTES = 64 * 1024 * 1024
_HASH = f"bucket[{2**31 - 1}]"
_MIXER = np.uint64(0x9E3779B97F4A7C15)

STAGED = pa.schema(
    [
        pa.field("part", pa.int32()),
        pa.field("rows", pa.int64()),
        pa.field("size_in_bytes", pa.int64()),
        pa.field("data", pa.binary()),
        pa.field("location", pa.string()),
        pa.field("batch", pa.int32()),
        pa.field("lower", pa.list_(pa.binary())),
        pa.field("upper", pa.list_(pa.binary())),
    ]
)


@dataclass(frozen=True)
class Dealing:
    """How rows are distributed: by the target's partition, by target file, or (neither) not at all.

    `partition_keys`: (column of the target, staged column) of the columns that the spec is made of.
    """

    spec: PartitionSpec | None = None
    target: Schema | None = None
    partition_keys: tuple[tuple[str, str], ...] = ()
    file_column: str | None = None


@dataclass(frozen=True)
class StageContext:
    """What all staging tasks share: `schema` of the staged rows, `keys` whose bounds are kept.

    With `unique`, rows come sorted by key, and there must be one for each (`unique_rows`). With
    `slices`, each part is split further, by key (`sliced`).
    """

    schema: Schema
    keys: tuple[str, ...]
    dealing: Dealing
    folder: str
    io_properties: Mapping[str, str]
    unique: Keys | None = None
    slices: int = 1

    __repr__ = redacted_repr


@dataclass(frozen=True)
class Piece:
    """Some rows of one part: inside (`data`), or a batch of an Arrow file."""

    part: int
    rows: int
    size_in_bytes: int
    data: bytes | None = None
    location: str | None = None
    batch: int = 0


def part_of_partition(partition: tuple[bytes | None, ...]) -> int:
    """Return the part of a partition; the same in every process."""
    return zlib.crc32(repr(partition).encode()) % PARTS


def part_of_location(location: str) -> int:
    """Return the part of a target file."""
    return zlib.crc32(location.encode()) % PARTS


def stage_batches(
    context: StageContext, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Stage the rows of one task, some at a time; yield rows of `STAGED`."""
    rows: Iterable[pa.RecordBatch]
    rows = (conform(batch, context.schema) for batch in batches if batch.num_rows)
    if context.unique is not None:
        rows = unique_rows(rows, context.unique)
    for table in _chunks(rows):
        parts = dealt(table, context.dealing)
        if context.slices > 1:
            parts = sliced(parts, context.keys, context.slices)
        yield describe(context, [(part, one) for part, some in parts for one in some.to_batches()])


def stage_scan(
    context: StageContext, columns: tuple[tuple[str, str], ...], task: ScanTask
) -> Iterator[pa.RecordBatch]:
    """Stage the rows of a table that one task reads; `columns`: (staged column, column)."""
    names = [staged for staged, _ in columns]
    rows = (
        pa.RecordBatch.from_arrays([batch.column(name) for _, name in columns], names=names)
        for batch in scan_kernel(task)
    )
    return stage_batches(context, rows)


def stage_plain(context: StageContext, task: PlainTask) -> Iterator[pa.RecordBatch]:
    """Stage the rows of plain files that one task reads."""
    return stage_batches(context, plain_rows(task))


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows in tables that fit into memory."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= _CHUNK_BYTES:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting).combine_chunks()


def describe(context: StageContext, parts: list[tuple[int, pa.RecordBatch]]) -> pa.RecordBatch:
    """Keep rows of some parts; return where they are, as rows of `STAGED`."""
    if sum(batch.nbytes for _, batch in parts) <= _INLINE_BYTES:
        described = [{"data": _stream(batch), "batch": 0} for _, batch in parts]
    else:
        location = f"{context.folder}/{uuid.uuid4()}.arrow"
        _write(location, [batch for _, batch in parts], Storage(context.io_properties))
        described = [{"location": location, "batch": number} for number in range(len(parts))]
    found = [
        {
            "part": part,
            "rows": batch.num_rows,
            "size_in_bytes": batch.nbytes,
            **_bounds(batch, context.keys),
            **where,
        }
        for (part, batch), where in zip(parts, described, strict=True)
    ]
    return pa.RecordBatch.from_pylist(found, STAGED)


def dealt(table: pa.Table, dealing: Dealing) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of each part."""
    if dealing.file_column is not None:
        yield from _by_file(table, _one(table[dealing.file_column]))
    elif dealing.spec is not None and dealing.target is not None:
        yield from _by_partition(table, dealing.spec, dealing.target, dealing.partition_keys)
    else:
        yield WHOLE, table


def sliced(
    parts: Iterable[tuple[int, pa.Table]], keys: tuple[str, ...], slices: int
) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of each part in slices, rows of equal keys in one; see `part_of_slice`."""
    for part, rows in parts:
        numbers = _hashes(rows, keys) % np.uint64(slices)
        for number, some in _grouped(rows, numbers.astype(np.int32)):
            yield part + PARTS * number, some


def part_of_slice(number: int) -> int:
    """Return the part that a slice is of."""
    return number % PARTS


def _hashes(rows: pa.Table, keys: tuple[str, ...]) -> NDArray[np.uint64]:
    """Return a number of each row that tells nothing of its partition; equal keys have one."""
    found = np.zeros(rows.num_rows, np.uint64)
    for name in keys:
        if not pa.types.is_boolean(rows.schema.field(name).type):
            own = apply_transform(_HASH, _one(rows[name])).fill_null(0)
            found = found * np.uint64(31) + np.asarray(own).astype(np.uint64)
    # A bucket of the table is made of the same hash: other bits of a product are as good as new.
    return (found * _MIXER) >> np.uint64(40)


def _by_file(table: pa.Table, files: pa.Array) -> Iterator[tuple[int, pa.Table]]:
    encoded = pc.dictionary_encode(files)
    names = encoded.dictionary.to_pylist()
    numbers = np.array([part_of_location(name) for name in names], np.int32)
    places = np.asarray(encoded.indices.fill_null(-1))
    parts = np.where(places >= 0, numbers[places] if len(numbers) else NO_FILE, NO_FILE)
    yield from _grouped(table, parts)


def _by_partition(
    table: pa.Table,
    spec: PartitionSpec,
    target: Schema,
    keys: tuple[tuple[str, str], ...],
) -> Iterator[tuple[int, pa.Table]]:
    columns = Schema(pa.schema([target.arrow.field(name).with_nullable(True) for name, _ in keys]))
    numbered = columns.arrow.append(pa.field("row", pa.int64()))
    batch = pa.RecordBatch.from_arrays(
        [
            # A key that does not fit the column matches no row, so any part will do.
            *(
                _one(table[staged]).cast(columns.arrow.field(name).type, safe=False)
                for name, staged in keys
            ),
            pa.array(np.arange(table.num_rows)),
        ],
        schema=numbered,
    )
    parts = np.empty(table.num_rows, np.int32)
    for partition, some in split_by_partition(batch, spec, columns):
        parts[np.asarray(some.column(len(keys)))] = part_of_partition(tuple(partition))
    yield from _grouped(table, parts)


def _one(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


def _grouped(table: pa.Table, parts: NDArray[np.int32]) -> Iterator[tuple[int, pa.Table]]:
    held, ordered = parts, table
    if (parts[1:] < parts[:-1]).any():  # rows of a partitioned table come part by part
        order = np.argsort(parts, kind="stable")
        held, ordered = parts[order], table.take(pa.array(order))
    edges = np.flatnonzero(np.diff(held)) + 1
    for start, end in zip([0, *edges.tolist()], [*edges.tolist(), len(held)], strict=True):
        yield int(held[start]), ordered.slice(start, end - start).combine_chunks()


def _bounds(batch: pa.RecordBatch, keys: tuple[str, ...]) -> dict[str, list[bytes | None]]:
    """Return the least and the greatest value of each key, encoded; None where there is none."""
    lower: list[bytes | None] = []
    upper: list[bytes | None] = []
    for name in keys:
        column = batch.column(name)
        kind = column.type
        if pa.types.is_nested(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind):
            # NaN lies outside of every range.
            lower.append(None)
            upper.append(None)
            continue
        found = pc.min_max(column)
        lower.append(encode(pa.array([found["min"].as_py()], kind))[0].as_py())
        upper.append(encode(pa.array([found["max"].as_py()], kind))[0].as_py())
    return {"lower": lower, "upper": upper}


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _write(location: str, batches: list[pa.RecordBatch], storage: Storage) -> None:
    with (
        storage.open_output(location) as sink,
        pa.ipc.new_file(sink, batches[0].schema) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)


def pieces_of(staged: pa.Table) -> list[Piece]:
    """Return what was staged as pieces."""
    columns = ["part", "rows", "size_in_bytes", "data", "location", "batch"]
    return [Piece(**row) for row in staged.select(columns).to_pylist()]


def read_pieces(pieces: Iterable[Piece], schema: pa.Schema, storage: Storage) -> pa.Table:
    """Return the rows of some pieces, in their order, as one chunk."""
    batches = [_read(piece, storage) for piece in pieces]
    return pa.Table.from_batches(batches, schema).combine_chunks()


def _read(piece: Piece, storage: Storage) -> pa.RecordBatch:
    if piece.data is not None:
        with pa.ipc.open_stream(pa.py_buffer(piece.data)) as stream:
            return stream.read_next_batch()
    assert piece.location is not None
    with storage.open_input(piece.location) as source, pa.ipc.open_file(source) as held:
        return held.get_batch(piece.batch)
