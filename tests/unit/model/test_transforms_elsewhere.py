"""Bucket and truncate give the values of other implementations: iceberg-rust and PyIceberg."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyiceberg import types as iceberg
from pyiceberg.transforms import BucketTransform, TruncateTransform
from pyiceberg_core import transform as rust

from rowlake.model import murmur3
from rowlake.model.transform import apply_transform

WIDTHS = st.integers(1, 2**31 - 1)
# Long ones are hashed by another path than short ones, in the same array.
BYTES = st.binary(max_size=12) | st.binary(max_size=150)
MANY_BYTES = st.lists(st.none() | BYTES, max_size=40)
MANY_TEXTS = st.lists(st.none() | st.text(max_size=50), max_size=40)
UNSCALED = (
    st.integers(-9, 9) | st.integers(-(2**64), 2**64) | st.integers(-(10**38) + 1, 10**38 - 1)
)
MANY_DECIMALS = st.lists(st.none() | UNSCALED, max_size=40)


def decimals(unscaled, scale: int = 0) -> pa.Array:
    values = [None if each is None else Decimal(f"{each}e-{scale}") for each in unscaled]
    return pa.array(values, pa.decimal128(38, scale))


def same_buckets(values: pa.Array, count: int) -> None:
    """Check few values as they are hashed, one by one, and as many would be, all at once."""
    for array in (values, values.slice(1), values.slice(2, 3)):
        expected = rust.bucket(array, count)
        assert apply_transform(f"bucket[{count}]", array).equals(expected)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(murmur3, "FEW_VALUES", 0)
            assert apply_transform(f"bucket[{count}]", array).equals(expected)


@given(MANY_BYTES, WIDTHS)
@example([b""] * 3, 7)
@example([b"abc", b"abcd", b"abcde", None, b""], 7)
def test_buckets_of_bytes(values, count) -> None:
    same_buckets(pa.array(values, pa.binary()), count)
    same_buckets(pa.array(values, pa.large_binary()), count)


@given(MANY_TEXTS, WIDTHS)
def test_buckets_of_text(values, count) -> None:
    same_buckets(pa.array(values, pa.string()), count)
    same_buckets(pa.array(values, pa.large_string()), count)
    python = BucketTransform(count).transform(iceberg.StringType())
    expected = [None if value is None else python(value) for value in values]
    assert (
        apply_transform(f"bucket[{count}]", pa.array(values, pa.string())).to_pylist() == expected
    )


@given(st.integers(1, 40), st.data(), WIDTHS)
def test_buckets_of_fixed_bytes(size, data, count) -> None:
    one = st.none() | st.binary(min_size=size, max_size=size)
    values = data.draw(st.lists(one, max_size=20))
    same_buckets(pa.array(values, pa.binary(size)), count)


@given(MANY_DECIMALS, st.integers(0, 38), WIDTHS)
@example([127, 128, -128, -129, 0, -1], 0, 7)
@example([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**71 - 1, 2**71, -(2**71)], 0, 7)
def test_buckets_of_decimals(unscaled, scale, count) -> None:
    same_buckets(decimals(unscaled, scale), count)
    python = BucketTransform(count).transform(iceberg.DecimalType(38, 0))
    expected = [None if each is None else python(Decimal(each)) for each in unscaled]
    assert apply_transform(f"bucket[{count}]", decimals(unscaled)).to_pylist() == expected


@given(MANY_DECIMALS, st.integers(0, 38), WIDTHS)
@example([2**63 - 1, -(2**63), 5, -5], 0, 10)
@example([10**38 - 1, -(10**37), -1], 2, 2**31 - 1)
def test_decimals_are_truncated_alike(unscaled, scale, width) -> None:
    values = decimals(unscaled, scale)
    for array in (values, values.slice(1), values.slice(2, 3)):
        assert apply_transform(f"truncate[{width}]", array).equals(rust.truncate(array, width))
    python = TruncateTransform(width).transform(iceberg.DecimalType(38, 0))
    small = [each for each in unscaled if each is None or abs(each) < 10**20]
    expected = [None if each is None else python(Decimal(each)) for each in small]
    assert apply_transform(f"truncate[{width}]", decimals(small)).to_pylist() == expected


def test_buckets_of_more_values_than_are_hashed_at_once() -> None:
    chance = np.random.default_rng(7)
    lengths = chance.integers(0, 200, 80_000)
    values = pa.array([chance.bytes(length) for length in lengths])
    assert apply_transform("bucket[97]", values).equals(rust.bucket(values, 97))
