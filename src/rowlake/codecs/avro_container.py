r"""Avro container files: header, blocks and the numbers between them.

Layout: magic `Obj\x01`, a map of metadata (string to bytes), a 16-byte sync marker; then blocks of
row count, byte count, compressed rows, sync marker. Counts and lengths are zigzag varints.

Manifests and data files are read and written through here. Bytes that follow no layout raise
`Malformed`; `CutOff` where there may be more of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.codecs.avro_bounds import Malformed

if TYPE_CHECKING:
    from collections.abc import Mapping

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
LONGEST_COUNTS = 20  # bytes of a block's row count and byte count
_LONG_BITS = 70  # ten bytes of seven bits
_SCHEMA, _CODEC = "avro.schema", "avro.codec"


class CutOff(Malformed):
    """The bytes end before what they announce."""


@dataclass(frozen=True)
class ContainerHeader:
    """What a container file says of itself; its blocks start at `end`."""

    metadata: Mapping[str, bytes]
    sync: bytes
    end: int

    @property
    def schema(self) -> bytes:
        """The JSON of the schema."""
        return self.metadata[_SCHEMA]

    @property
    def codec(self) -> str:
        """How blocks are compressed."""
        return self.metadata.get(_CODEC, b"null").decode(errors="replace")


def parse_header(data: bytes) -> ContainerHeader:
    """Return the header of a file of which `data` is the beginning."""
    if data[: len(MAGIC)] != MAGIC:
        raise Malformed("it is not an Avro file")
    try:
        metadata, end = _metadata(data, len(MAGIC))
    except IndexError as error:
        raise CutOff("it ends within its header") from error
    if _SCHEMA not in metadata:
        raise Malformed("it has no schema")
    if len(data) < end + SYNC_BYTES:
        raise CutOff("it ends within its header")
    return ContainerHeader(metadata, data[end : end + SYNC_BYTES], end + SYNC_BYTES)


def _metadata(data: bytes, at: int) -> tuple[dict[str, bytes], int]:
    pairs: dict[str, bytes] = {}
    count, at = read_long(data, at)
    while count:
        if count < 0:  # a block with its size in bytes after the count
            count = -count
            _, at = read_long(data, at)
        for _ in range(count):
            key, at = read_bytes(data, at)
            pairs[key.decode()], at = read_bytes(data, at)
        count, at = read_long(data, at)
    return pairs, at


def block_at(data: bytes, at: int) -> tuple[int, int, int]:
    """Return a block's row count and where its bytes start and end; they are not looked at."""
    count, at = read_long(data, at)
    size, at = read_long(data, at)
    if count < 0 or size < 0:
        raise Malformed(f"a block of {count} rows in {size} bytes")
    return count, at, at + size


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and the position after it; IndexError where the bytes end within it."""
    byte = data[at]
    value = byte & 0x7F
    shift = 7
    while byte >= 0x80:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > _LONG_BITS:
            raise Malformed("a number has more than 64 bits")
    return (value >> 1) ^ -(value & 1), at + 1


def read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    """Return a byte string, which has its length in front, and the position after it."""
    size, at = read_long(data, at)
    end = at + size
    if size < 0 or end > len(data):
        kind = Malformed if size < 0 else CutOff
        raise kind(f"a value of {size} bytes does not fit")
    return data[at:end], end


@dataclass(frozen=True)
class Block:
    """Rows [first, first + count), compressed."""

    first: int
    count: int
    payload: bytes


def container_header(metadata: Mapping[str, str], codec: str) -> tuple[bytes, bytes]:
    """Return a container file's header and its sync marker."""
    sync = os.urandom(SYNC_BYTES)
    return header_bytes(metadata, codec, sync), sync


def header_bytes(metadata: Mapping[str, str], codec: str, sync: bytes) -> bytes:
    """Return the header of a container file with a given sync marker."""
    entries = {_CODEC: codec, **metadata}
    pairs = b"".join(_text(key) + _text(value) for key, value in entries.items())
    return MAGIC + varint(len(entries)) + pairs + b"\x00" + sync


def framed(block: Block, sync: bytes) -> bytes:
    """Return a block as it stands in a container file."""
    return varint(block.count) + varint(len(block.payload)) + block.payload + sync


def _text(value: str) -> bytes:
    data = value.encode()
    return varint(len(data)) + data


def varint(value: int) -> bytes:
    """Return a number as a zigzag varint."""
    rest = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)
