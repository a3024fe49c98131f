"""Key index of a data file: sorted key hashes with the positions of their rows, in a Puffin file.

Layout of the blob, which starts right after the Puffin magic; numbers are little-endian:

- 0: magic `RLKEYS01`; 8: length of the description (u32); 12: CRC-32 of what is from byte 16 to the
  end of the directory (u32); 16: number of entries (u64); 24: bits of a bucket's number (u8);
  25: bits of a position (u8); 26: six zero bytes
- 32: description (JSON): which data file and which keys
- directory: the first entry of each bucket and the number of entries, u32 each
- fingerprints: per bucket a CRC-32 and the fingerprints of its entries (u16), ascending
- positions: per bucket a CRC-32 and the positions of its entries (u32), in the same order

An entry's bucket is the first bits of its hash, its fingerprint the next 16. A look-up reads the
header and the directory once (some 4 bytes per 128 rows), then of each hash the fingerprints of one
bucket, and the positions of buckets with a hit. So fingerprints are the filter before positions: a
key that the file does not have passes in one of about 500 cases. Checksums of buckets start from
that of the header: buckets of another index never fit.

Invariant: positions found are those of all rows with such a hash, and maybe of others: the reader
compares keys. Damage of any kind raises CorruptTableError; it never loses a position.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rowlake.codecs.puffin import MAGIC, Blob, write_puffin
from rowlake.errors import CorruptTableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Hashes = NDArray[np.uint64]
    # Reads byte ranges (starts, lengths), ascending; returns their bytes one after the other.
    ReadRanges = Callable[[Numbers, Numbers], NDArray[np.uint8]]

BLOB_TYPE = "rowlake-key-index-v1"
BUCKET_ENTRIES = 128
MOST_ROWS = 1 << 31
HEADER_BYTES = 32
_MAGIC = b"RLKEYS01"
_HEADER = struct.Struct("<8sIIQBB6x")
_CHECKED_FROM = 16
_FINGERPRINT_BITS = 16
_HASH_BITS = 64
_MOST_DESCRIPTION_BYTES = 1 << 20
_DAMAGE = (ValueError, KeyError, TypeError, RecursionError, struct.error)


@dataclass(frozen=True)
class IndexedFile:
    """Which file an index is of, and of which keys.

    Keys are columns by name and field id, with the families of their types; `mapped` are names that
    they have in files without ids. All must be as they were: else the index is of other values.
    """

    location: str
    file_size_in_bytes: int
    record_count: int
    field_ids: tuple[int, ...]
    families: tuple[str, ...]
    names: tuple[str, ...] = ()
    mapped: tuple[str, ...] = ()


def encode(file: IndexedFile, hashes: Hashes, *, created_by: str) -> bytes:
    """Return the Puffin file of a data file's index; `hashes` are those of all rows in order."""
    count = len(hashes)
    if count != file.record_count or count > MOST_ROWS:
        raise ValueError(f"{count} hashes for {file.record_count} rows")
    position_bits = max(count - 1, 1).bit_length()
    bucket_bits = _bucket_bits(count, position_bits)
    words = (hashes >> np.uint64(position_bits)) << np.uint64(position_bits)
    words |= np.arange(count, dtype=np.uint64)
    words.sort()
    buckets = _top(words, bucket_bits)
    directory = np.searchsorted(buckets, np.arange((1 << bucket_bits) + 1)).astype("<u4")
    said = json.dumps(asdict(file), separators=(",", ":")).encode()
    rest = struct.pack("<QBB6x", count, bucket_bits, position_bits)
    checked = b"".join([rest, said, directory.tobytes()])
    seed = zlib.crc32(checked)
    positions = words & np.uint64((1 << position_bits) - 1)
    parts = [
        struct.pack("<8sII", _MAGIC, len(said), seed),
        checked,
        _area(_fingerprints(words, bucket_bits), buckets, directory, seed, "<u2"),
        _area(positions, buckets, directory, seed, "<u4"),
    ]
    blob = Blob(
        BLOB_TYPE,
        b"".join(parts),
        fields=file.field_ids,
        properties={"data-file": file.location},
    )
    return write_puffin([blob], created_by=created_by).data


def _bucket_bits(count: int, position_bits: int) -> int:
    """Return how many bits number the buckets; a hash must be left with bits for all parts."""
    wanted = max(count // BUCKET_ENTRIES, 1).bit_length() - 1
    return min(wanted, _HASH_BITS - position_bits - _FINGERPRINT_BITS)


def _top(words: Hashes, bits: int) -> Numbers:
    if not bits:
        return np.zeros(len(words), np.int64)
    return (words >> np.uint64(_HASH_BITS - bits)).astype(np.int64)


def _fingerprints(words: Hashes, bucket_bits: int) -> Hashes:
    shift = np.uint64(_HASH_BITS - bucket_bits - _FINGERPRINT_BITS)
    return (words >> shift) & np.uint64(0xFFFF)


def _area(
    values: Hashes, buckets: Numbers, directory: NDArray[np.uint32], seed: int, kind: str
) -> bytes:
    """Return values by bucket, each bucket after its checksum."""
    width = np.dtype(kind).itemsize
    lead = 4 // width  # what a checksum takes, in values
    count = len(directory) - 1
    area = np.zeros(lead * count + len(values), kind)
    area[lead * (buckets + 1) + np.arange(len(values))] = values
    data = bytearray(area.tobytes())
    view = memoryview(data)
    starts = (width * directory.astype(np.int64) + 4 * np.arange(count + 1)).tolist()
    for bucket in range(count):
        first, end = starts[bucket], starts[bucket + 1]
        checksum = zlib.crc32(view[first + 4 : end], seed ^ bucket)
        struct.pack_into("<I", data, first, checksum)
    return bytes(data)


@dataclass(frozen=True)
class KeyIndex:
    """The header and directory of an index; `find` reads the rest as far as it is needed."""

    location: str
    file: IndexedFile
    seed: int
    bucket_bits: int
    directory: Numbers
    fingerprints_at: int
    positions_at: int

    @property
    def size_in_memory(self) -> int:
        """How many bytes it takes, about."""
        return int(self.directory.nbytes) + 1024

    def find(self, hashes: Hashes, read: ReadRanges) -> Numbers:
        """Return the positions, ascending, of all rows with one of the hashes, and maybe others."""
        wanted = np.unique(
            _top(hashes, self.bucket_bits) << _FINGERPRINT_BITS
            | _fingerprints(hashes, self.bucket_bits).astype(np.int64)
        )
        probed = np.unique(wanted >> _FINGERPRINT_BITS)
        probed = probed[self.directory[probed + 1] > self.directory[probed]]
        if not len(probed):
            return np.empty(0, np.int64)
        fingerprints = self._entries(probed, self.fingerprints_at, "<u2", read)
        counts = self.directory[probed + 1] - self.directory[probed]
        codes = np.repeat(probed, counts) << _FINGERPRINT_BITS | fingerprints
        at = np.searchsorted(wanted, codes)
        at[at == len(wanted)] = 0
        hit = wanted[at] == codes
        touched = np.unique(codes[hit] >> _FINGERPRINT_BITS)
        if not len(touched):
            return np.empty(0, np.int64)
        positions = self._entries(touched, self.positions_at, "<u4", read)
        is_read = np.repeat(np.isin(probed, touched, assume_unique=True), counts)
        found = positions[hit[is_read]]
        if len(found) and int(found.max()) >= self.file.record_count:
            raise CorruptTableError(self.location, f"it has a position {int(found.max())}")
        return np.unique(found)

    def _entries(self, buckets: Numbers, base: int, kind: str, read: ReadRanges) -> Numbers:
        """Return the entries of some buckets, one after the other."""
        width = np.dtype(kind).itemsize
        starts = base + 4 * buckets + width * self.directory[buckets]
        lengths = 4 + width * (self.directory[buckets + 1] - self.directory[buckets])
        data = read(starts, lengths)
        if len(data) != int(lengths.sum()):
            raise CorruptTableError(self.location, "it ends within its entries")
        ends = np.cumsum(lengths)
        view = memoryview(data.tobytes())
        for bucket, end, length in zip(
            buckets.tolist(), ends.tolist(), lengths.tolist(), strict=True
        ):
            first = end - length
            (checksum,) = struct.unpack_from("<I", view, first)
            if zlib.crc32(view[first + 4 : end], self.seed ^ bucket) != checksum:
                raise CorruptTableError(self.location, f"the checksum of its bucket {bucket}")
        values = np.frombuffer(view, kind)
        is_entry = np.ones(len(values), np.bool_)
        lead = 4 // width
        heads = (ends - lengths) // width
        is_entry[(heads[:, None] + np.arange(lead)).ravel()] = False
        return values[is_entry].astype(np.int64)


def decode_head(
    location: str, size_in_bytes: int, first: bytes, read: Callable[[int, int], bytes]
) -> KeyIndex:
    """Return the index in a Puffin file of which `first` are the first bytes; `read` reads more.

    `read` takes an offset and a length.
    """
    try:
        return _decoded(location, size_in_bytes, first, read)
    except _DAMAGE as error:
        raise CorruptTableError(location, f"the key index is damaged ({error})") from error


def _decoded(location: str, size: int, first: bytes, read: Callable[[int, int], bytes]) -> KeyIndex:
    start = len(MAGIC)
    if first[:start] != MAGIC:
        raise ValueError("it is no Puffin file")
    magic, said_bytes, seed, count, bucket_bits, _ = _HEADER.unpack_from(first, start)
    if magic != _MAGIC or said_bytes > _MOST_DESCRIPTION_BYTES or count > MOST_ROWS:
        raise ValueError("it does not begin as one")
    buckets = 1 << min(bucket_bits, 48)
    head = start + HEADER_BYTES + said_bytes + 4 * (buckets + 1)
    end = head + 8 * buckets + 6 * count
    if buckets > max(count, 1) or end > size:
        raise ValueError(f"{count} entries do not fit {size} bytes")
    data = first if head <= len(first) else first + read(len(first), head - len(first))
    if zlib.crc32(data[start + _CHECKED_FROM : head]) != seed or len(data) < head:
        raise ValueError("its checksum does not match")
    described = start + HEADER_BYTES
    directory = np.frombuffer(data, "<u4", buckets + 1, described + said_bytes).astype(np.int64)
    if directory[0] or directory[-1] != count or (np.diff(directory) < 0).any():
        raise ValueError("its directory is not ascending")
    file = _file(json.loads(data[described : described + said_bytes]))
    if file.record_count != count:
        raise ValueError(f"{count} entries for {file.record_count} rows")
    fingerprints_at = head
    positions_at = fingerprints_at + 4 * buckets + 2 * count
    return KeyIndex(location, file, seed, bucket_bits, directory, fingerprints_at, positions_at)


def _file(said: dict[str, Any]) -> IndexedFile:
    return IndexedFile(
        str(said["location"]),
        int(said["file_size_in_bytes"]),
        int(said["record_count"]),
        tuple(int(each) for each in said["field_ids"]),
        tuple(str(each) for each in said["families"]),
        tuple(str(each) for each in said["names"]),
        tuple(str(each) for each in said["mapped"]),
    )
