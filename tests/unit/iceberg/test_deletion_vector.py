"""Deletion vectors: Java's bytes, and what is refused."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from rowlake.codecs import deletion_vector as dv
from rowlake.errors import CorruptTableError, UnsupportedFeatureError

# Blobs that Iceberg Java's tests keep for its own format.
EMPTY = "0000000cd1d339640000000000000000bf18480c"


def reference(positions: list[int]) -> bytes:
    """Return the blob of positions below 2^16 that make no run, written by hand."""
    low = b"".join(struct.pack("<H", one) for one in positions)
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(positions) - 1, 16) + low
    data = dv.MAGIC + struct.pack("<QI", 1, 0) + bitmap
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


@pytest.mark.spec("Puffin: layout of a deletion-vector-v1 blob")
def test_empty_vector_is_javas_bytes() -> None:
    assert dv.encode(BitMap64()).hex() == EMPTY
    assert len(dv.decode(bytes.fromhex(EMPTY), "x")) == 0


@pytest.mark.spec("Puffin: layout of a deletion-vector-v1 blob")
def test_small_vector_has_the_layout_of_the_spec() -> None:
    positions = [1, 3, 5, 7, 9]
    assert dv.encode(BitMap64(positions)) == reference(positions)


def test_keys_below_the_highest_are_written_empty_as_java_does() -> None:
    blob = dv.encode(BitMap64([1 << 33]))
    assert struct.unpack_from("<Q", blob, 8) == (3,)
    assert list(dv.decode(blob, "x")) == [1 << 33]


def test_runs_are_run_length_encoded() -> None:
    assert len(dv.encode(BitMap64(range(100_000)))) < 100


@given(st.sets(st.integers(0, 1 << 40), max_size=50) | st.sets(st.integers(0, 70_000)))
def test_round_trip(positions: set[int]) -> None:
    if positions and max(positions) >> 32 > 40:
        positions = {one % (1 << 35) for one in positions}
    blob = dv.encode(dv.bitmap_of(np.array(sorted(positions), np.int64)))
    decoded = dv.decode(blob, "x", cardinality=len(positions))
    assert dv.positions_of(decoded).tolist() == sorted(positions)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda blob: blob[:8], "8 bytes"),
        (lambda blob: blob[:-1], "length field"),
        (lambda blob: blob + b"x", "length field"),
        (lambda blob: blob[:4] + b"\0" + blob[5:], "magic bytes"),
        (lambda blob: blob[:20] + bytes([blob[20] ^ 1]) + blob[21:], "CRC-32"),
        (lambda blob: blob[:-1] + bytes([blob[-1] ^ 1]), "CRC-32"),
    ],
)
def test_damage_is_found(change, cause) -> None:
    blob = dv.encode(BitMap64([1, 2, 3, 70_000]))
    with pytest.raises(CorruptTableError, match=cause) as error:
        dv.decode(change(blob), "s3://b/v.puffin")
    assert error.value.location == "s3://b/v.puffin"


def test_a_bitmap_that_is_not_one_is_refused() -> None:
    data = dv.MAGIC + struct.pack("<QI", 1, 0) + b"\xff" * 8
    blob = struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    with pytest.raises(CorruptTableError, match="bitmap"):
        dv.decode(blob, "x")


def test_wrong_cardinality_is_refused() -> None:
    with pytest.raises(CorruptTableError, match="2 positions, expected 3"):
        dv.decode(dv.encode(BitMap64([1, 2])), "x", cardinality=3)


def framed(bitmap: bytes) -> bytes:
    data = dv.MAGIC + bitmap
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def full_runs(containers: int) -> bytes:
    """Return the bitmap of all positions below 65,536 times `containers`: ten bytes for each."""
    cookie = struct.pack("<HH", 12347, containers - 1) + b"\xff" * (-(-containers // 8))
    keys = b"".join(struct.pack("<HH", key, 65_535) for key in range(containers))
    first = len(cookie) + len(keys) + 4 * containers
    offsets = b"".join(struct.pack("<I", first + 6 * at) for at in range(containers))
    runs = struct.pack("<HHH", 1, 0, 65_535) * containers
    return struct.pack("<QI", 1, 0) + cookie + keys + offsets + runs


def test_a_small_vector_of_billions_of_rows_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="4,294,967,296 rows"):
        dv.decode(framed(full_runs(65_536)), "x", cardinality=1 << 32)


def test_a_vector_of_long_runs_is_read() -> None:
    assert len(dv.decode(framed(full_runs(64)), "x")) == 64 * 65_536


@pytest.mark.parametrize("position", [1 << 48, (1 << 62) + 5])
def test_a_position_beyond_all_files_is_refused(position) -> None:
    blob = framed(bytes(BitMap64([1, position]).serialize()))
    with pytest.raises(CorruptTableError, match="out of range"):
        dv.decode(blob, "x")


@pytest.mark.parametrize(
    "bitmap",
    [
        struct.pack("<Q", 2**40) + bytes(100),
        struct.pack("<Q", 2**64 - 1) + bytes(100),
        struct.pack("<QIII", 1, 0, 12346, 2**31) + bytes(100),
        struct.pack("<QIHH", 1, 0, 12347, 65_535) + b"\xff" * 8192,
    ],
    ids=["bitmaps", "all bitmaps", "containers", "runs"],
)
def test_a_bitmap_that_counts_more_than_it_holds_is_refused(bitmap) -> None:
    with pytest.raises(CorruptTableError, match="bitmap"):
        dv.decode(framed(bitmap), "x")
