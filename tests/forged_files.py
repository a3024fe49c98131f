"""Data files whose footers were changed: lengths and counts that the content does not have."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pyarrow.orc as orc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pyarrow as pa

STRIPES, ROWS, INDEX, DATA, FOOTER, OFFSET = 3, 5, 2, 3, 4, 1


def zigzag(number: int) -> bytes:
    return varint((number << 1) ^ (number >> 63))


def varint(number: int) -> bytes:
    data = b""
    while number > 127:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def forged_parquet(path: Path, table: pa.Table, changed: Mapping[int, int], **options) -> str:
    """Write a Parquet file whose footer has other numbers in place of some (all occurrences)."""
    pq.write_table(table, path, compression="none", **options)
    data = path.read_bytes()
    (length,) = struct.unpack("<I", data[-8:-4])
    body, footer = data[: -8 - length], data[-8 - length : -8]
    for old, new in changed.items():
        assert zigzag(old) in footer
        footer = footer.replace(zigzag(old), zigzag(new))
    path.write_bytes(body + footer + struct.pack("<I", len(footer)) + b"PAR1")
    return str(path)


def forged_orc(path: Path, table: pa.Table, changed: Mapping[int, int]) -> str:
    """Write an ORC file whose stripes say other numbers (by field number) than they have."""
    orc.write_table(table, str(path), compression="uncompressed")
    data = path.read_bytes()
    postscript = data[-1 - data[-1] : -1]
    said = dict(_fields(postscript))
    length = said[1]
    at = len(data) - 1 - len(postscript) - length
    footer = b"".join(
        _field(number, _changed(value, changed) if number == STRIPES else value)
        for number, value in _fields(data[at : at + length])
    )
    tail = b"".join(
        _field(number, len(footer) if number == 1 else value)
        for number, value in _fields(postscript)
    )
    path.write_bytes(data[:at] + footer + tail + bytes([len(tail)]))
    return str(path)


def _changed(stripe: bytes, changed: Mapping[int, int]) -> bytes:
    numbers = {**dict(_fields(stripe)), **changed}
    return b"".join(_field(number, value) for number, value in numbers.items())


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def _fields(message: bytes) -> list[tuple[int, int | bytes]]:
    found, at = [], 0
    while at < len(message):
        key, at = _read(message, at)
        value, at = _read(message, at)
        if key & 7 == 2:
            value, at = message[at : at + value], at + value
        found.append((key >> 3, value))
    return found


def _read(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (message[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if not message[at - 1] & 128:
            return value, at
