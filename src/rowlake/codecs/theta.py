"""Theta sketches: how many distinct values there are, in a few KB that can be merged.

Comes in: values in their single-value binary form. Goes out: the compact form of Apache
DataSketches, which the Puffin blob `apache-datasketches-theta-v1` holds. A value counts by a hash
(MurmurHash3 x64, 128 bits, seed 9001, the first half without its lowest bit); the sketch keeps the
`NOMINAL` smallest hashes, and `theta` is the bound below which it knows them all. As in
DataSketches, empty values (an empty string) are not counted.

Layout of the compact form, little-endian; longs of the preamble: 1 (empty, or one value), 2 (all
values are kept), 3 (estimating):

- 0: longs of the preamble; 1: version 3; 2: family 3 (compact); 3, 4: 0; 5: flags
- 6, 2 bytes: hash of the seed
- 8, 4 bytes: count of hashes; 12, 4 bytes: 1.0 as a float (sampling probability)
- 16, 8 bytes: theta
- then the hashes, 8 bytes each, ascending

Nothing here needs PyIceberg: tasks make sketches.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

BLOB_TYPE = "apache-datasketches-theta-v1"
NOMINAL = 4096
MAX_THETA = (1 << 63) - 1
SEED = 9001
SEED_HASH = 0x93CC

_EMPTY = bytes([1, 3, 3, 0, 0, 0x1E, 0, 0])
_SINGLE, _ORDERED = 0x3A, 0x1A
_BLOCK = 16
_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)


def _no_hashes() -> np.ndarray:
    return np.empty(0, dtype=np.uint64)


@dataclass
class ThetaSketch:
    """The smallest hashes seen, ascending, each once; all are below `theta`."""

    hashes: np.ndarray = field(default_factory=_no_hashes)
    theta: int = MAX_THETA

    def update(self, values: pa.BinaryArray) -> None:
        """Count values, none of which is null."""
        self.add(hashes_of(values))

    def add(self, hashes: np.ndarray) -> None:
        """Count values by their hashes."""
        fresh = hashes[(hashes < np.uint64(self.theta)) & (hashes != 0)]
        if len(fresh):
            self._keep(np.unique(np.concatenate([self.hashes, fresh])))

    def merge(self, other: ThetaSketch) -> None:
        """Count all that another sketch has counted."""
        self.theta = min(self.theta, other.theta)
        both = np.unique(np.concatenate([self.hashes, other.hashes]))
        self._keep(both[both < np.uint64(self.theta)])

    def _keep(self, hashes: np.ndarray) -> None:
        if len(hashes) > NOMINAL:
            self.theta, hashes = int(hashes[NOMINAL]), hashes[:NOMINAL]
        self.hashes = hashes

    @property
    def estimate(self) -> int:
        """How many distinct values were counted: exact up to `NOMINAL`."""
        if self.theta == MAX_THETA:
            return len(self.hashes)
        return int(len(self.hashes) * (float(MAX_THETA) / self.theta))

    def to_bytes(self) -> bytes:
        """Return the compact form."""
        count, is_exact = len(self.hashes), self.theta == MAX_THETA
        if is_exact and count == 0:
            return _EMPTY
        data = self.hashes.astype("<u8").tobytes()
        if is_exact and count == 1:
            return struct.pack("<6BH", 1, 3, 3, 0, 0, _SINGLE, SEED_HASH) + data
        longs = 2 if is_exact else 3
        head = struct.pack("<6BHif", longs, 3, 3, 0, 0, _ORDERED, SEED_HASH, count, 1.0)
        return head + (b"" if is_exact else struct.pack("<Q", self.theta)) + data


def merged(sketches: Iterable[ThetaSketch]) -> ThetaSketch:
    """Return one sketch of all that several have counted."""
    result = ThetaSketch()
    for sketch in sketches:
        result.merge(sketch)
    return result


def hashes_of(values: pa.BinaryArray) -> np.ndarray:
    """Return the hashes of values that are not null; of empty ones there are none."""
    offsets = np.frombuffer(values.buffers()[1] or b"\0\0\0\0", dtype=np.int32)
    offsets = offsets[values.offset : values.offset + len(values) + 1].astype(np.int64)
    lengths = np.diff(offsets)
    starts = offsets[:-1]
    if not lengths.all():
        starts, lengths = starts[lengths > 0], lengths[lengths > 0]
    data = np.frombuffer(values.buffers()[2] or b"", dtype=np.uint8)
    return murmur3(data, starts, lengths) >> np.uint64(1)


def murmur3(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the first 64 bits of MurmurHash3 (x64, 128 bits) of byte strings within `data`.

    Vectorised with NumPy: `mmh3` takes one Python value per call.
    """
    padded = np.concatenate([data, np.zeros(_BLOCK, dtype=np.uint8)])
    first = np.full(len(starts), SEED, dtype=np.uint64)
    second = first.copy()
    blocks = lengths // _BLOCK
    for at in range(int(blocks.max(initial=0))):
        rows = np.flatnonzero(blocks > at)
        low, high = _words(padded, starts[rows] + at * _BLOCK)
        mixed = _rotated(first[rows] ^ _mixed_low(low), 27) + second[rows]
        mixed = mixed * np.uint64(5) + np.uint64(0x52DCE729)
        other = _rotated(second[rows] ^ _mixed_high(high), 31) + mixed
        first[rows], second[rows] = mixed, other * np.uint64(5) + np.uint64(0x38495AB5)
    low, high = _words(padded, starts + blocks * _BLOCK, lengths % _BLOCK)
    return _finished(first ^ _mixed_low(low), second ^ _mixed_high(high), lengths)


def _words(
    data: np.ndarray, starts: np.ndarray, lengths: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return 16 bytes from each start as two words; what is beyond `lengths` counts as zeros."""
    rows = None if lengths is None else _even_rows(data, starts, lengths)
    if rows is None:
        places = np.arange(_BLOCK)
        rows = data[starts[:, None] + places]
        if lengths is not None:
            rows *= places < lengths[:, None]
    words = np.ascontiguousarray(rows).view("<u8").astype(np.uint64, copy=False)
    return words[:, 0], words[:, 1]


def _even_rows(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray | None:
    """Return the 16 bytes of equally long neighbours, as numbers are; None for anything else."""
    width = int(lengths[0]) if len(lengths) else 0
    if not width or (lengths != width).any() or (np.diff(starts) != width).any():
        return None
    rows = np.zeros((len(starts), _BLOCK), dtype=np.uint8)
    rows[:, :width] = data[starts[0] : starts[-1] + width].reshape(len(starts), width)
    return rows


def _mixed_low(word: np.ndarray) -> np.ndarray:
    return _rotated(word * _C1, 31) * _C2


def _mixed_high(word: np.ndarray) -> np.ndarray:
    return _rotated(word * _C2, 33) * _C1


def _rotated(bits: np.ndarray, by: int) -> np.ndarray:
    return np.asarray((bits << np.uint64(by)) | (bits >> np.uint64(64 - by)))


def _finished(first: np.ndarray, second: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    size = lengths.astype(np.uint64)
    first, second = first ^ size, second ^ size
    first = first + second
    second = second + first
    return np.asarray(_avalanche(first) + _avalanche(second))


def _avalanche(bits: np.ndarray) -> np.ndarray:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(factor)
    return np.asarray(bits ^ (bits >> np.uint64(33)))
