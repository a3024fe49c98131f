"""Bloom filters of Parquet column chunks: whether a value can be there at all.

pyarrow says where a filter is but does not read it. A filter is a Thrift header, then the bits
of a split-block Bloom filter (Parquet format, "Bloom Filter"): blocks of eight 32-bit words; the
upper half of a value's XXH64 picks the block, the lower half one bit in each word.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

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
_WORD = 0xFFFFFFFFFFFFFFFF
_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


class BloomFilter:
    """The filter of one column chunk; only the blocks asked for are read."""

    def __init__(self, stream: pa.NativeFile, bits_at: int, size_in_bytes: int) -> None:
        self._stream, self._bits_at, self._blocks = stream, bits_at, size_in_bytes // _BLOCK.size

    def may_hold(self, value: bytes) -> bool:
        """Return False where no row of the chunk has this value (in its plain encoding)."""
        hashed = xxh64(value)
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


def xxh64(data: bytes) -> int:
    """Return the 64-bit XXH64 hash with seed 0.

    Written here because it hashes only the literals of a predicate: a few per statement are not
    worth a dependency.
    """
    one, two, three, four, five = _PRIMES
    at, length = 0, len(data)
    if length >= 32:
        lanes = [(one + two) & _WORD, two, 0, -one & _WORD]
        while at + 32 <= length:
            parts = struct.unpack_from("<4Q", data, at)
            lanes = [_round(lane, part) for lane, part in zip(lanes, parts, strict=True)]
            at += 32
        turns = zip(lanes, (1, 7, 12, 18), strict=True)
        total = sum(_turned(lane, by) for lane, by in turns) & _WORD
        for lane in lanes:
            total = ((total ^ _round(0, lane)) * one + four) & _WORD
    else:
        total = five
    total = (total + length) & _WORD
    while at + 8 <= length:
        (part,) = struct.unpack_from("<Q", data, at)
        total = (_turned(total ^ _round(0, part), 27) * one + four) & _WORD
        at += 8
    if at + 4 <= length:
        (part,) = struct.unpack_from("<I", data, at)
        total = (_turned(total ^ (part * one & _WORD), 23) * two + three) & _WORD
        at += 4
    for byte in data[at:]:
        total = (_turned(total ^ (byte * five & _WORD), 11) * one) & _WORD
    return _mixed(total)


def _round(lane: int, part: int) -> int:
    return _turned((lane + part * _PRIMES[1]) & _WORD, 31) * _PRIMES[0] & _WORD


def _turned(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _WORD


def _mixed(total: int) -> int:
    total = ((total ^ (total >> 33)) * _PRIMES[1]) & _WORD
    total = ((total ^ (total >> 29)) * _PRIMES[2]) & _WORD
    return total ^ (total >> 32)
