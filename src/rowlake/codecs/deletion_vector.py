"""Deletion vectors: the positions of deleted rows of one data file, as a blob of bytes.

Comes in: a 64-bit Roaring bitmap; goes out: the bytes of a `deletion-vector-v1` blob, the same
bytes that Iceberg Java writes for the same positions, and back. Iceberg keeps blobs in Puffin
files, Delta Lake the same bytes in files of its own. Layout of the blob (Puffin spec,
`deletion-vector-v1`):

- 0, 4 bytes, big-endian: length of magic and vector
- 4, 4 bytes: magic `D1 D3 39 64`
- 8: the vector: count of 32-bit bitmaps (8 bytes, little-endian), then for each its key
  (4 bytes, little-endian) and its portable Roaring form
- last 4 bytes, big-endian: CRC-32 of magic and vector

Delta Lake also keeps magic and vector alone (inline vectors), and had an older form of the vector:
magic `D0 D3 39 64`, count of bitmaps (4 bytes, little-endian), then for each its size (4 bytes,
little-endian) and its portable Roaring form; the place in the list is the key.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap, BitMap64

from rowlake.errors import CorruptTableError, UnsupportedFeatureError

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOB_TYPE = "deletion-vector-v1"
MAGIC = b"\xd1\xd3\x39\x64"
NATIVE_MAGIC = b"\xd0\xd3\x39\x64"
_FRAME = 12  # length, magic, checksum
# No file has so many rows (2**48). Java's form has a bitmap for every key below the highest, so
# that a single position beyond all files would make a vector of gigabytes when it is written again.
_MAX_KEY = 2**16 - 1
# Runs of positions take no room in a blob, but eight bytes each once they are an array (2 GB).
MOST_POSITIONS = 1 << 28


def encode(positions: BitMap64) -> bytes:
    """Return the blob of these positions; the bitmap is run-optimised in place."""
    positions.run_optimize()
    data = MAGIC + _serialized(positions)
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def decode(blob: bytes, location: str, *, cardinality: int | None = None) -> BitMap64:
    """Return the positions of a blob; `location` is for messages.

    Raises `CorruptTableError` where length, magic, checksum, bitmap or count do not fit.
    """
    _validate_frame(blob, location, (MAGIC,))
    return decode_bare(blob[4:-4], location, cardinality=cardinality)


def decode_framed(blob: bytes, location: str, *, cardinality: int | None = None) -> BitMap64:
    """Return the positions of a blob whose vector may have either form."""
    _validate_frame(blob, location, (MAGIC, NATIVE_MAGIC))
    return decode_bare(blob[4:-4], location, cardinality=cardinality)


def decode_bare(data: bytes, location: str, *, cardinality: int | None = None) -> BitMap64:
    """Return the positions of magic and vector, without length and checksum."""
    readers = {MAGIC: BitMap64.deserialize, NATIVE_MAGIC: _from_native}
    read = readers.get(data[:4])
    if read is None:
        raise _corrupt(location, f"its magic bytes are {data[:4].hex(' ')}")
    try:
        positions = read(data[4:])
    except (ValueError, MemoryError, RuntimeError, struct.error) as error:
        raise _corrupt(location, f"its bitmap is not readable ({error})") from error
    return _validated(positions, location, cardinality)


def _validated(positions: BitMap64, location: str, cardinality: int | None) -> BitMap64:
    if len(positions) and positions.max() >> 32 > _MAX_KEY:
        raise _corrupt(location, f"position {positions.max()} is out of range")
    if len(positions) > MOST_POSITIONS:
        raise UnsupportedFeatureError(
            f"Cannot read {location}: its deletion vector marks {len(positions):,} rows of "
            f"one data file; rowlake reads up to {MOST_POSITIONS:,}."
        )
    if cardinality is not None and len(positions) != cardinality:
        raise _corrupt(location, f"it has {len(positions)} positions, expected {cardinality}")
    return positions


def bitmap_of(positions: NDArray[np.int64]) -> BitMap64:
    """Return the bitmap of an array of positions."""
    return BitMap64(np.ascontiguousarray(positions, dtype=np.uint64))


def positions_of(bitmap: BitMap64) -> NDArray[np.int64]:
    """Return the positions of a bitmap, sorted."""
    return np.frombuffer(bitmap.to_array(), dtype=np.uint64).astype(np.int64)


def _serialized(positions: BitMap64) -> bytes:
    """Return the portable form; like Java, with an empty bitmap for every unused lower key."""
    if not positions or positions.max() < 1 << 32:
        return bytes(positions.serialize())
    values = np.frombuffer(positions.to_array(), dtype=np.uint64)
    keys = values >> np.uint64(32)
    highest = int(keys[-1])
    edges = np.searchsorted(keys, np.arange(highest + 2, dtype=np.uint64))
    parts = [struct.pack("<Q", highest + 1)]
    for key in range(highest + 1):
        low = (values[edges[key] : edges[key + 1]] & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        bitmap = BitMap(low)
        bitmap.run_optimize()
        parts.append(struct.pack("<I", key) + bytes(bitmap.serialize()))
    return b"".join(parts)


def _from_native(data: bytes) -> BitMap64:
    """Return the positions of the older form of Delta Lake's vectors."""
    (count,) = struct.unpack_from("<i", data)
    if not 0 <= count <= _MAX_KEY + 1 or count > len(data):
        raise ValueError(f"it has {count} bitmaps")
    positions, offset = BitMap64(), 4
    for key in range(count):
        (size,) = struct.unpack_from("<i", data, offset)
        offset += 4
        if size < 0 or offset + size > len(data):
            raise ValueError(f"bitmap {key} has {size} bytes")
        low = np.frombuffer(BitMap.deserialize(data[offset : offset + size]).to_array(), np.uint32)
        positions |= BitMap64(low.astype(np.uint64) + np.uint64(key << 32))
        offset += size
    return positions


def _validate_frame(blob: bytes, location: str, known: tuple[bytes, ...]) -> None:
    if len(blob) < _FRAME:
        raise _corrupt(location, f"it has {len(blob)} bytes")
    (length,) = struct.unpack_from(">I", blob)
    if length != len(blob) - 8:
        raise _corrupt(location, f"its length field is {length}, expected {len(blob) - 8}")
    if blob[4:8] not in known:
        raise _corrupt(location, f"its magic bytes are {blob[4:8].hex(' ')}")
    (expected,) = struct.unpack_from(">I", blob, len(blob) - 4)
    found = zlib.crc32(memoryview(blob)[4:-4])
    if found != expected:
        raise _corrupt(location, f"its CRC-32 is {found:#010x}, expected {expected:#010x}")


def _corrupt(location: str, cause: str) -> CorruptTableError:
    return CorruptTableError(location, f"the deletion vector is damaged: {cause}")
