"""Bloom filters of Parquet column chunks: whether a value can be there at all.

pyarrow says where a filter is but does not read it. A filter is a Thrift header, then the bits
of a split-block Bloom filter (Parquet format, "Bloom Filter"): blocks of eight 32-bit words; the
upper half of a value's XXH64 picks the block, the lower half one bit in each word.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import xxhash

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_SALTS = (
    0x47B6137B,
    0x44974D91,
    0x8824AD5B,
    0xA2B7289D,
    0x705495C7,
    0x2DF1424B,
    0x9EFC4947,
    0x5C6BFB31,
)
_BLOCK = struct.Struct("<8I")
# After the size: the only algorithm, hash and compression there are, each an empty struct.
_REST = bytes.fromhex("1c1c00001c1c00001c1c000000")
_LONGEST_HEADER = 32


class BloomFilter:
    """The filter of one column chunk; only the blocks asked for are read."""

    def __init__(self, stream: pa.NativeFile, bits_at: int, size_in_bytes: int) -> None:
        self._stream, self._bits_at, self._blocks = stream, bits_at, size_in_bytes // _BLOCK.size

    def may_hold(self, value: bytes) -> bool:
        """Return False where no row of the chunk has this value (in its plain encoding)."""
        hashed = xxhash.xxh64_intdigest(value)
        block = ((hashed >> 32) * self._blocks) >> 32
        key = hashed & 0xFFFFFFFF
        data = self._stream.read_at(_BLOCK.size, self._bits_at + block * _BLOCK.size)
        if len(data) < _BLOCK.size:
            return True
        words = zip(_BLOCK.unpack(data), _SALTS, strict=True)
        return all(word >> (((key * salt) & 0xFFFFFFFF) >> 27) & 1 for word, salt in words)


def open_bloom_filter(stream: pa.NativeFile, chunk: pq.ColumnChunkMetaData) -> BloomFilter | None:
    """Return a column chunk's filter, None where it has none (or one of a kind unknown here)."""
    offset = getattr(chunk, "bloom_filter_offset", None)  # pyarrow before 23 does not say
    if not offset:
        return None
    header = stream.read_at(_LONGEST_HEADER, offset)
    size, used = _size_field(header)
    if not size or not header.startswith(_REST, used) or size % _BLOCK.size:
        return None
    return BloomFilter(stream, offset + used + len(_REST), size)


def _size_field(header: bytes) -> tuple[int | None, int]:
    """Return the size in bytes (field 1, a zigzag varint) and where it ends."""
    if not header or header[0] != 0x15:
        return None, 0
    value, shift = 0, 0
    for used, byte in enumerate(header[1:], start=2):
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value >> 1, used
    return None, 0
