"""Avro data files.

DataFusion decodes Avro into Arrow; it is imported when the first Avro file is read. It reads
whole files by path, and drops the ids. So the file's header and the index of its blocks are read
here, runs of blocks are handed over as small files (header + blocks), and the ids are taken from
the schema in the header. Units are runs of blocks; nothing is pruned.

Layout of a file: `Obj` 1, metadata (a map of bytes), 16 bytes sync marker; then blocks: row
count, size in bytes (zigzag varints), data, sync marker.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowlake.model.schema import FIELD_ID, children
from rowlake.scan.failures import reading
from rowlake.scan.ids import with_ids
from rowlake.scan.shape import leaf_ranges, with_children
from rowlake.scan.source import Unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from rowlake.model.predicate import Predicate
    from rowlake.model.schema import Schema
    from rowlake.scan.project import Columns
    from rowlake.storage.files import Storage

_MAGIC = b"Obj\x01"
_SYNC = 16
_UNIT_BYTES = 16 * 1024 * 1024
_WINDOW = 4 * 1024 * 1024


class AvroSource:
    """One open Avro file."""

    def __init__(
        self, location: str, storage: Storage, table: Schema, name_mapping: str | None
    ) -> None:
        self.location = location
        with reading(location):
            self._stream = storage.open_input(location)
            self._bytes = _Window(self._stream)
            self._header, text = _header(self._bytes)
            self._decoder = _Decoder()
            found = _with_avro_ids(self._decoder.schema(self._header), json.loads(text))
            self.units, self._ends = _runs(self._bytes, len(self._header))
        self.schema = with_ids(found, table, name_mapping, by_position=False)

    def kept(self, leaves: frozenset[int]) -> frozenset[int]:
        """Return the leaves that come when these are asked for: whole columns."""
        wanted = [
            numbers for _, numbers in leaf_ranges(self.schema.arrow) if leaves.intersection(numbers)
        ]
        return frozenset(leaf for numbers in wanted for leaf in numbers)

    def read(self, unit: Unit, kept: frozenset[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield a run's rows in order."""
        ranges = enumerate(numbers for _, numbers in leaf_ranges(self.schema.arrow))
        indices = [index for index, numbers in ranges if kept.intersection(numbers)]
        with reading(self.location):
            blocks = self._stream.read_at(self._ends[unit.index] - unit.offset, unit.offset)
            decoded = self._decoder.table(self._header + blocks).select(indices)
            if decoded.num_rows != unit.num_rows:
                raise ValueError(f"{decoded.num_rows} rows in blocks that count {unit.num_rows}")
        yield from decoded.combine_chunks().to_batches(max_chunksize=batch_rows)

    def may_match(
        self,
        units: list[Unit],
        predicate: Predicate,  # noqa: ARG002
        columns: Columns,  # noqa: ARG002
    ) -> NDArray[np.bool_]:
        """Return True for every run: Avro has no statistics."""
        return np.ones(len(units), np.bool_)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


class _Decoder:
    """DataFusion's Avro reader, over bytes."""

    def __init__(self) -> None:
        from datafusion import SessionConfig, SessionContext

        # One partition: row positions need the file's order.
        self._context = SessionContext(SessionConfig().with_target_partitions(1))

    def schema(self, data: bytes) -> pa.Schema:
        with _TemporaryFile(data) as path:
            return self._context.read_avro(path).schema()

    def table(self, data: bytes) -> pa.Table:
        with _TemporaryFile(data) as path:
            frame = self._context.read_avro(path)
            return pa.Table.from_batches(frame.collect(), schema=frame.schema())


class _TemporaryFile:
    """A file with these bytes, gone at the end."""

    def __init__(self, data: bytes) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rowlake-avro-")
        self._path = Path(self._folder.name) / "blocks.avro"
        self._path.write_bytes(data)

    def __enter__(self) -> str:
        return str(self._path)

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


class _Window:
    """Bytes of a file by position, read in large pieces."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream, self.size = stream, stream.size()
        self._start, self._held = 0, b""

    def at(self, position: int, count: int) -> bytes:
        if position + count > self.size:
            raise EOFError(f"it ends at {self.size}, within the bytes from {position}")
        end = self._start + len(self._held)
        if not self._start <= position or position + count > end:
            self._start = position
            self._held = self._stream.read_at(max(_WINDOW, count), position)
        offset = position - self._start
        return self._held[offset : offset + count]

    def long(self, position: int) -> tuple[int, int]:
        """Return a zigzag varint and the position after it."""
        value, shift = 0, 0
        while True:
            byte = self.at(position, 1)[0]
            value |= (byte & 0x7F) << shift
            position, shift = position + 1, shift + 7
            if not byte & 0x80:
                return (value >> 1) ^ -(value & 1), position
            if shift > 63:
                raise ValueError(f"no number at {position}")


def _header(data: _Window) -> tuple[bytes, bytes]:
    """Return the header's bytes and the schema's JSON."""
    if data.at(0, 4) != _MAGIC:
        raise ValueError("it does not start as an Avro file does")
    held, position = {}, 4
    count, position = data.long(position)
    while count:
        if count < 0:
            _, position = data.long(position)
        for _ in range(abs(count)):
            key, position = _bytes_at(data, position)
            held[key], position = _bytes_at(data, position)
        count, position = data.long(position)
    if b"avro.schema" not in held:
        raise ValueError("its header has no schema")
    return data.at(0, position + _SYNC), held[b"avro.schema"]


def _bytes_at(data: _Window, position: int) -> tuple[bytes, int]:
    size, position = data.long(position)
    if size < 0:
        raise ValueError(f"a length of {size} at {position}")
    return data.at(position, size), position + size


def _runs(data: _Window, start: int) -> tuple[list[Unit], list[int]]:
    """Return runs of blocks, and where each ends."""
    units: list[Unit] = []
    ends: list[int] = []
    sync = data.at(start - _SYNC, _SYNC)
    position = offset = start
    rows = first_row = 0
    while position < data.size:
        count, after = data.long(position)
        size, after = data.long(after)
        if count < 0 or size < 0 or data.at(after + size, _SYNC) != sync:
            raise ValueError(f"the block at {position} is damaged")
        position, rows = after + size + _SYNC, rows + count
        if position - offset >= _UNIT_BYTES or position == data.size:
            units.append(Unit(len(units), offset, first_row, rows))
            ends.append(position)
            offset, first_row, rows = position, first_row + rows, 0
    return units, ends


def _with_avro_ids(schema: pa.Schema, avro: Mapping[str, Any]) -> pa.Schema:
    """Return the Arrow schema with the ids of the Avro schema that it was made from."""
    names: dict[str, Any] = {}
    names[avro["name"]] = avro
    fields = [
        _with_id(arrow, known.get("field-id"), known["type"], names)
        for arrow, known in zip(schema, avro["fields"], strict=True)
    ]
    return pa.schema(fields)


def _with_id(arrow: pa.Field, known: Any, avro: Any, names: dict[str, Any]) -> pa.Field:
    below = children(arrow.type)
    metadata = {} if known is None else {FIELD_ID: str(known).encode()}
    changed = arrow.type
    if below:
        parts = zip(below, _parts(_resolved(avro, names)), strict=True)
        remaining = [_with_id(child, key, kind, names) for child, (key, kind) in parts]
        changed = with_children(arrow.type, remaining)
    return pa.field(arrow.name, changed, arrow.nullable, metadata=metadata)


def _resolved(avro: Any, names: dict[str, Any]) -> Any:
    """Return the type behind a union with null, a reference by name, or a type in a type."""
    if isinstance(avro, list):
        (only,) = (option for option in avro if option != "null")
        return _resolved(only, names)
    if isinstance(avro, str):
        return names.get(avro, avro)
    if isinstance(avro, dict) and "name" in avro:
        names[avro["name"]] = avro
    nested = avro.get("type") if isinstance(avro, dict) else None
    return _resolved(nested, names) if isinstance(nested, (dict, list)) else avro


def _parts(avro: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Return (id, type) of a nested type's children."""
    if avro["type"] == "record":
        return [(field.get("field-id"), field["type"]) for field in avro["fields"]]
    if avro["type"] == "map":
        return [(avro.get("key-id"), "string"), (avro.get("value-id"), avro["values"])]
    return [(avro.get("element-id"), avro["items"])]
