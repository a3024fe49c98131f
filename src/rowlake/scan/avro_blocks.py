"""Blocks of Avro files, decompressed within bounds.

Comes in: the bytes of some blocks as they stand in a file, and its codec. Goes out: pieces of
uncompressed blocks, each small enough to be decoded at once. A few hundred kilobytes may
decompress to gigabytes, so no block is given more memory than `MOST_BLOCK_BYTES`: writers make
blocks of about 64 KB, and no smaller than one row.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.iceberg.avro_encode import Block, framed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_BLOCK_BYTES = 256 * 1024 * 1024
PIECE_BYTES = 16 * 1024 * 1024
# A row without columns takes no bytes, any other at least one.
MOST_EMPTY_ROWS = 1 << 20
_CHUNK = 1024 * 1024
_XZ_MEMORY = 256 * 1024 * 1024  # for the dictionary that a stream may ask for
_SYNC = 16
_CHECKSUM = 4  # behind a snappy block


@dataclass(frozen=True)
class Piece:
    """Some blocks as a file without compression has them, and how many rows they have."""

    data: bytes
    num_rows: int


def pieces_of(data: bytes, codec: str) -> Iterator[Piece]:
    """Yield the blocks of these bytes, uncompressed, in pieces of about `PIECE_BYTES`.

    Raises ValueError where a block is damaged or larger than a block may be.
    """
    held: list[bytes] = []
    size = rows = at = 0
    while at < len(data):
        count, at = _long(data, at)
        length, at = _long(data, at)
        plain = inflated(data[at : at + length], codec)
        if count > max(len(plain), MOST_EMPTY_ROWS):
            raise ValueError(f"a block of {len(plain)} bytes says that it has {count} rows")
        end = at + length
        held.append(framed(Block(0, count, plain), data[end : end + _SYNC]))
        at, size, rows = end + _SYNC, size + len(plain), rows + count
        if size >= PIECE_BYTES or at >= len(data):
            yield Piece(b"".join(held), rows)
            held, size, rows = [], 0, 0


def inflated(data: bytes, codec: str, limit: int = MOST_BLOCK_BYTES) -> bytes:
    """Return the bytes of a block; ValueError where they are damaged or more than the limit."""
    inflate = _CODECS.get(codec)
    if inflate is None:
        raise ValueError(f"its codec {codec} is not known")
    try:
        found = inflate(data, limit)
    except (zlib.error, lzma.LZMAError, EOFError, IndexError, OSError) as error:
        raise ValueError(f"a block cannot be decompressed ({error})") from error
    if len(found) > limit:
        raise ValueError(f"a block of {len(data)} bytes decompresses to more than {limit}")
    return found


def _deflate(data: bytes, limit: int) -> bytes:
    return _whole(zlib.decompressobj(-zlib.MAX_WBITS), data, limit)


def _bzip2(data: bytes, limit: int) -> bytes:
    return _whole(bz2.BZ2Decompressor(), data, limit)


def _xz(data: bytes, limit: int) -> bytes:
    return _whole(lzma.LZMADecompressor(memlimit=_XZ_MEMORY), data, limit)


def _whole(
    stream: zlib._Decompress | bz2.BZ2Decompressor | lzma.LZMADecompressor, data: bytes, limit: int
) -> bytes:
    found = stream.decompress(data, limit + 1)
    if len(found) <= limit and not stream.eof:
        raise EOFError("it ends too soon")
    return found


def _zstandard(data: bytes, limit: int) -> bytes:
    parts, size = [], 0
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        while size <= limit and (part := stream.read(_CHUNK)):
            parts.append(part)
            size += len(part)
    return b"".join(parts)


def _snappy(data: bytes, limit: int) -> bytes:
    """Raw snappy (its size as a plain varint first), then the CRC-32 of the bytes, big-endian."""
    size, _ = _varint(data, 0)
    if size > limit:
        raise ValueError(f"a block of {len(data)} bytes decompresses to {size}")
    compressed = data[:-_CHECKSUM]
    plain: bytes = pa.Codec("snappy").decompress(compressed, decompressed_size=size, asbytes=True)
    if zlib.crc32(plain) != int.from_bytes(data[-_CHECKSUM:], "big"):
        raise ValueError("the checksum of a block differs")
    return plain


_CODECS: dict[str, Callable[[bytes, int], bytes]] = {
    "null": lambda data, _: data,
    "deflate": _deflate,
    "snappy": _snappy,
    "zstandard": _zstandard,
    "bzip2": _bzip2,
    "xz": _xz,
}


def _long(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
