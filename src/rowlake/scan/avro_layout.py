"""The layout of Avro files: header, blocks, and the ids in the schema.

Comes in: a file's bytes. Goes out: the header with the schema's JSON, runs of blocks with their
places and row counts, and Arrow schemas with the ids of Avro ones. A file is `Obj` 1, metadata
(a map of bytes), 16 bytes sync marker; then blocks: row count, size in bytes (zigzag varints),
data, sync marker.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.codecs.avro_encode import container_header
from rowlake.model.schema import FIELD_ID, children
from rowlake.scan.shape import with_children
from rowlake.scan.source import Unit

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAGIC = b"Obj\x01"
_SYNC = 16
_WINDOW = 4 * 1024 * 1024


class Window:
    """Bytes of a file by position, read in large pieces."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream, self.size = stream, stream.size()
        self._start, self._held = 0, b""

    def at(self, position: int, count: int) -> bytes:
        """Return bytes; `EOFError` where the file is shorter."""
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


@dataclass(frozen=True)
class Header:
    """The start of a file: `size_in_bytes` of it, the schema's JSON, the codec, the sync marker."""

    size_in_bytes: int
    schema: str
    codec: str
    sync: bytes

    def of_plain_blocks(self) -> bytes:
        """Return the header of a file with the same schema and marker, without compression."""
        head, sync = container_header({"avro.schema": self.schema}, "null")
        return head[: -len(sync)] + self.sync


def read_header(data: Window) -> Header:
    """Return the header of a file."""
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
    codec = held.get(b"avro.codec", b"null").decode()
    sync = data.at(position, _SYNC)
    return Header(position + _SYNC, held[b"avro.schema"].decode(), codec, sync)


def _bytes_at(data: Window, position: int) -> tuple[bytes, int]:
    size, position = data.long(position)
    if size < 0:
        raise ValueError(f"a length of {size} at {position}")
    return data.at(position, size), position + size


def runs_of_blocks(data: Window, start: int, unit_bytes: int) -> tuple[list[Unit], list[int]]:
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
        if position - offset >= unit_bytes or position == data.size:
            units.append(Unit(len(units), offset, first_row, rows))
            ends.append(position)
            offset, first_row, rows = position, first_row + rows, 0
    return units, ends


def with_avro_ids(schema: pa.Schema, text: str) -> pa.Schema:
    """Return the Arrow schema with the ids of the Avro schema (JSON) that it was made from.

    Raises ValueError where that is no Avro schema of a record.
    """
    try:
        return _with_ids(schema, json.loads(text))
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"its schema is not one of an Avro record ({error!r})") from error


def _with_ids(schema: pa.Schema, avro: Mapping[str, Any]) -> pa.Schema:
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
