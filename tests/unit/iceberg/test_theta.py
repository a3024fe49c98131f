"""Theta sketches: the hashes and bytes of Apache DataSketches."""

from __future__ import annotations

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowlake.codecs.theta import (
    MAX_THETA,
    NOMINAL,
    SEED,
    SEED_HASH,
    ThetaSketch,
    hashes_of,
    merged,
)


def expected(values: list[bytes]) -> list[int]:
    return [mmh3.mmh3_x64_128_utupledigest(value, SEED)[0] >> 1 for value in values if value]


def sketch_of(first: int, count: int) -> ThetaSketch:
    sketch = ThetaSketch()
    data = np.arange(first, first + count, dtype="<i8").tobytes()
    values = [data[at : at + 8] for at in range(0, len(data), 8)]
    sketch.update(pa.array(values, pa.binary()))
    return sketch


@settings(deadline=None)
@given(st.lists(st.binary(max_size=70)), st.integers(0, 5))
def test_values_of_any_length_hash_as_murmur3_does(values, skipped):
    array = pa.array(values, pa.binary()).slice(skipped)
    assert hashes_of(array).tolist() == expected(values[skipped:])


@pytest.mark.parametrize("width", [1, 4, 8, 16])
def test_numbers_hash_as_murmur3_does(width):
    values = [at.to_bytes(width, "little") for at in range(200)]
    assert hashes_of(pa.array(values, pa.binary())).tolist() == expected(values)


def test_the_seed_has_its_own_hash():
    hashed = mmh3.mmh3_x64_128_utupledigest(SEED.to_bytes(8, "little"), 0)[0]
    assert hashed & 0xFFFF == SEED_HASH


@pytest.mark.parametrize("count", [0, 1, 2, NOMINAL - 1, NOMINAL])
def test_up_to_the_nominal_size_counts_are_exact(count):
    sketch = sketch_of(0, count)
    sketch.update(pa.array([(0).to_bytes(8, "little")] * min(count, 1), pa.binary()))
    assert (sketch.estimate, sketch.theta) == (count, MAX_THETA)


@pytest.mark.parametrize("count", [NOMINAL + 1, 20_000, 300_000])
def test_beyond_it_they_are_near(count):
    sketch = sketch_of(0, count)
    assert len(sketch.hashes) == NOMINAL
    assert sketch.estimate == pytest.approx(count, rel=0.05)


def test_sketches_of_parts_merge_to_the_sketch_of_the_whole():
    whole = sketch_of(0, 30_000)
    parts = merged(sketch_of(first, 12_000) for first in (0, 9_000, 18_000))
    assert parts.theta == whole.theta
    assert np.array_equal(parts.hashes, whole.hashes)
    few = merged([sketch_of(0, 5), ThetaSketch(), sketch_of(3, 5)])
    assert few.estimate == 8


def test_compact_forms_have_the_layout_of_datasketches():
    assert ThetaSketch().to_bytes() == bytes.fromhex("0103030000 1e 0000".replace(" ", ""))
    one = sketch_of(7, 1)
    assert one.to_bytes() == bytes.fromhex("01030300003acc93") + one.hashes.tobytes()
    two = sketch_of(7, 2)
    head = bytes.fromhex("02030300001acc93") + bytes.fromhex("020000000000803f")
    assert two.to_bytes() == head + two.hashes.tobytes()
    many = sketch_of(0, 5000)
    data = many.to_bytes()
    assert data[:8] == bytes.fromhex("03030300001acc93")
    assert int.from_bytes(data[8:12], "little") == NOMINAL
    assert int.from_bytes(data[16:24], "little") == many.theta
    assert len(data) == 24 + 8 * NOMINAL
