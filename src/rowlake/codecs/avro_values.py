"""Readers of Avro values: a schema becomes a function that takes bytes and a position.

A reader returns the value and the position after it. Bytes that do not follow the schema raise
`Malformed`, or IndexError where they end within a value.
"""

from __future__ import annotations

import struct
from typing import Any

from rowlake.codecs.avro_bounds import MOST_ITEMS, Malformed
from rowlake.codecs.avro_container import read_bytes, read_long


def value_reader(avro: Any, *, prefixed: bool) -> Any:
    """Return the reader of a schema; `prefixed`: plain `fixed` values have a length in front."""
    return _Readers(prefixed).of(avro)


def _string(data: bytes, at: int) -> tuple[str, int]:
    value, at = read_bytes(data, at)
    return value.decode(), at


def _null(_data: bytes, at: int) -> tuple[None, int]:
    return None, at


def _boolean(data: bytes, at: int) -> tuple[bool, int]:
    if data[at] > 1:
        raise Malformed("a boolean is neither 0 nor 1")
    return data[at] == 1, at + 1


def _float(data: bytes, at: int) -> tuple[float, int]:
    return struct.unpack_from("<f", data, at)[0], at + 4


def _double(data: bytes, at: int) -> tuple[float, int]:
    return struct.unpack_from("<d", data, at)[0], at + 8


_PRIMITIVE_READERS = {
    "null": _null,
    "boolean": _boolean,
    "int": read_long,
    "long": read_long,
    "float": _float,
    "double": _double,
    "bytes": read_bytes,
    "string": _string,
}


class _Readers:
    """Builds the reader of a schema; `prefixed`: plain `fixed` values have a length in front."""

    def __init__(self, prefixed: bool) -> None:
        self.prefixed = prefixed
        self.named: dict[str, Any] = {}

    def of(self, avro: Any) -> Any:
        if isinstance(avro, list):
            return _union([self.of(branch) for branch in avro])
        if isinstance(avro, str):
            found = _PRIMITIVE_READERS.get(avro) or self.named.get(avro)
            if found is None:
                raise Malformed(f"type {avro} is not known")
            return found
        kind = avro["type"]
        if kind == "record":
            made = _record([(field["name"], self.of(field["type"])) for field in avro["fields"]])
        elif kind == "array":
            made = _array(self.of(avro["items"]))
        elif kind == "map":
            made = _array(_record([("key", _string), ("value", self.of(avro["values"]))]))
        elif kind == "fixed":
            made = _fixed(avro["size"], self.prefixed and "logicalType" not in avro)
        else:
            made = self.of(kind)
        if "name" in avro:
            self.named[avro["name"]] = made
        return made


def _union(branches: list[Any]) -> Any:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        branch, at = read_long(data, at)
        if not 0 <= branch < len(branches):
            raise Malformed(f"a union has no branch {branch}")
        value: tuple[Any, int] = branches[branch](data, at)
        return value

    return read


def _record(fields: list[tuple[str, Any]]) -> Any:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        row = {}
        for name, field in fields:
            row[name], at = field(data, at)
        return row, at

    return read


def _array(item: Any) -> Any:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        items: list[Any] = []
        count, at = read_long(data, at)
        while count:
            if count < 0:
                count = -count
                _, at = read_long(data, at)
            if len(items) + count > MOST_ITEMS:
                raise Malformed(f"an array has more than {MOST_ITEMS:,} items")
            for _ in range(count):
                value, at = item(data, at)
                items.append(value)
            count, at = read_long(data, at)
        return items, at

    return read


def _fixed(size: int, prefixed: bool) -> Any:
    def read(data: bytes, at: int) -> tuple[bytes, int]:
        if prefixed:
            value, at = read_bytes(data, at)
            if len(value) != size:
                raise Malformed(f"a fixed value has {len(value)} bytes")
            return value, at
        if at + size > len(data):
            raise Malformed("a fixed value does not fit")
        return data[at : at + size], at + size

    return read
