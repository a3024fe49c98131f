"""How much an Avro file may ask for: bounds that are checked before anything is allocated.

Comes in: compressed blocks and schemas of files that others wrote. Goes out: plain bytes, never
more than the caller allows, and how large a value of a schema is at least. Invariant: what a
file can make a reader allocate is proportional to the file, by `RATIO` at most.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

# Real manifests shrink to a tenth or a fiftieth; a file of zeros to a thousandth and less.
RATIO = 200
LEAST_LIMIT_BYTES = 16 * 1024 * 1024  # below this any ratio will do
MOST_BYTES = 4 * 1024 * 1024 * 1024
MOST_DEPTH = 32  # of a schema; manifests have six levels
MOST_FIELDS = 20_000  # of a schema, those of named types counted wherever the name stands
MOST_ITEMS = 1_000_000  # of one array; manifests have one per column, or per row group
_CHUNK_BYTES = 1024 * 1024
_XZ_MEMORY_BYTES = 256 * 1024 * 1024
_SNAPPY_RATIO = 64  # a copy of 64 bytes takes two or three


class Malformed(ValueError):
    """The bytes do not follow the schema, or ask for more than any honest file does."""


def plain_limit(size_in_bytes: int) -> int:
    """Return how many bytes a file of this size may unpack to."""
    return min(max(LEAST_LIMIT_BYTES, RATIO * size_in_bytes), MOST_BYTES)


def decompress(data: bytes, codec: str, limit: int) -> bytes:
    """Return the plain bytes of a block; raises `Malformed` where there are more than `limit`."""
    parts, size = [], 0
    for part in _chunks(data, codec, limit):
        size += len(part)
        if size > limit:
            raise Malformed(f"it unpacks to more than {limit:,} bytes")
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def plain_size(data: bytes, codec: str, limit: int) -> int:
    """Return the size of `decompress` without holding more than a part of it in memory."""
    size = 0
    for part in _chunks(data, codec, limit):
        size += len(part)
        if size > limit:
            raise Malformed(f"it unpacks to more than {limit:,} bytes")
    return size


def _chunks(data: bytes, codec: str, limit: int) -> Iterator[bytes]:
    if codec == "null":
        yield data
    elif codec == "deflate":
        yield from _inflated(data)
    elif codec == "snappy":
        yield _unsnapped(data, limit)
    elif codec in _STREAMS:
        with _STREAMS[codec](data) as stream:
            while part := stream.read(_CHUNK_BYTES):
                yield part
    else:
        raise Malformed(f"its Avro codec {codec} is not known")


def _inflated(data: bytes) -> Iterator[bytes]:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    waiting = data
    while not inflater.eof:
        part = inflater.decompress(waiting, _CHUNK_BYTES)
        waiting = inflater.unconsumed_tail
        if not part and not waiting and not inflater.eof:
            raise Malformed("a compressed block is cut off")
        yield part


def _zstd(data: bytes) -> Any:
    return pa.CompressedInputStream(pa.BufferReader(data), "zstd")


def _xz(data: bytes) -> BytesIO:
    return _Bounded(lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES), data)


def _bz2(data: bytes) -> bz2.BZ2File:
    return bz2.BZ2File(BytesIO(data))


class _Bounded(BytesIO):
    """An xz stream whose decoder allocates no more than is allowed."""

    def __init__(self, decoder: lzma.LZMADecompressor, data: bytes) -> None:
        super().__init__()
        self._decoder, self._waiting = decoder, data

    def read(self, size: int | None = -1) -> bytes:
        if self._decoder.eof:
            return b""
        part = self._decoder.decompress(self._waiting, _CHUNK_BYTES if size is None else size)
        self._waiting = b""
        if not part and not self._decoder.eof:
            raise Malformed("a compressed block is cut off")
        return part


_STREAMS: dict[str, Any] = {"zstandard": _zstd, "xz": _xz, "bzip2": _bz2}


def _unsnapped(data: bytes, limit: int) -> bytes:
    """Raw snappy (its size as a plain varint first), then the CRC-32 of the bytes, big-endian."""
    size, shift = 0, 0
    for byte in data[:10]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > min(limit, _SNAPPY_RATIO * len(data)):
        raise Malformed(f"a block of {len(data)} bytes says that it unpacks to {size:,}")
    raw: bytes = pa.Codec("snappy").decompress(data[:-4], decompressed_size=size, asbytes=True)
    if zlib.crc32(raw) != int.from_bytes(data[-4:], "big"):
        raise Malformed("its checksum differs")
    return raw


def validate_schema(avro: Any) -> None:
    """Refuse a schema that is too deep or too wide, or whose arrays grow without bytes."""
    _Measure().of(avro, 0)


_LEAST = {"null": 0, "float": 4, "double": 8}


class _Measure:
    """Counts the bytes that a value takes at least, and the fields of its type."""

    def __init__(self) -> None:
        self.named: dict[str, tuple[int, int]] = {}

    def of(self, avro: Any, depth: int) -> tuple[int, int]:
        """Return (least bytes, fields) of a type."""
        if depth > MOST_DEPTH:
            raise Malformed(f"its schema is nested deeper than {MOST_DEPTH} levels")
        if isinstance(avro, list):
            return 1, sum(self.of(branch, depth + 1)[1] for branch in avro)
        if isinstance(avro, str):
            return self.named.get(avro) or (_LEAST.get(avro, 1), 1)
        found = self.complex(avro, depth + 1)
        if found[1] > MOST_FIELDS:
            raise Malformed(f"its schema has more than {MOST_FIELDS:,} fields")
        if "name" in avro:
            self.named[avro["name"]] = found
        return found

    def complex(self, avro: dict[str, Any], depth: int) -> tuple[int, int]:
        kind = avro["type"]
        if kind == "record":
            parts = [self.of(field["type"], depth) for field in avro["fields"]]
            return sum(least for least, _ in parts), 1 + sum(fields for _, fields in parts)
        if kind == "fixed":
            return _fixed_size(avro["size"]), 1
        if kind not in ("array", "map"):
            return self.of(kind, depth)
        least, fields = self.of(avro["items" if kind == "array" else "values"], depth)
        if kind == "array" and not least:
            raise Malformed("it has an array of items that take no bytes")
        return 1, 1 + fields


def _fixed_size(size: Any) -> int:
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise Malformed(f"a fixed type has the size {size!r}")
    return size
