"""Where the blocks of an Avro data file are, and which ids its schema has.

Comes in: an open file. Goes out: its header, runs of blocks with their places and row counts, and
Arrow schemas with the ids of Avro ones. The bytes are parsed by `rowlake.codecs.avro_container`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.codecs.avro_container import (
    LONGEST_COUNTS,
    SYNC_BYTES,
    CutOff,
    block_at,
    header_bytes,
    parse_header,
)
from rowlake.model.schema import FIELD_ID, children
from rowlake.scan.shape import with_children
from rowlake.scan.source import Unit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.codecs.avro_container import ContainerHeader

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

    def block_at(self, position: int) -> tuple[int, int, int]:
        """Return a block's row count and where its bytes start and end."""
        counts = self.at(position, min(LONGEST_COUNTS, self.size - position))
        try:
            count, start, end = block_at(counts, 0)
        except IndexError:
            raise EOFError(f"it ends at {self.size}, within a block") from None
        return count, position + start, position + end


def read_header(data: Window, size: int = _WINDOW) -> ContainerHeader:
    """Return the header of a file; the bytes read double until it is whole."""
    try:
        return parse_header(data.at(0, min(size, data.size)))
    except CutOff:
        if size >= data.size:
            raise
    return read_header(data, size * 2)


def plain_header(header: ContainerHeader) -> bytes:
    """Return the header of a file with the same schema and marker, without compression."""
    return header_bytes({"avro.schema": header.schema.decode()}, "null", header.sync)


def runs_of_blocks(data: Window, start: int, unit_bytes: int) -> tuple[list[Unit], list[int]]:
    """Return runs of blocks, and where each ends."""
    units: list[Unit] = []
    ends: list[int] = []
    sync = data.at(start - SYNC_BYTES, SYNC_BYTES)
    position = offset = start
    rows = first_row = 0
    while position < data.size:
        count, _, end = data.block_at(position)
        if data.at(end, SYNC_BYTES) != sync:
            raise ValueError(f"the block at {position} is damaged")
        position, rows = end + SYNC_BYTES, rows + count
        if position - offset >= unit_bytes or position == data.size:
            units.append(Unit(len(units), offset, first_row, rows))
            ends.append(position)
            offset, first_row, rows = position, first_row + rows, 0
    return units, ends


def with_avro_ids(schema: pa.Schema, text: bytes) -> pa.Schema:
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
