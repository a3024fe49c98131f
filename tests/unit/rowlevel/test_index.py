"""Keys are matched as Spark joins them; checked against a loop over all pairs."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowlake.rowlevel.index import KeyIndex

DAY = dt.date(2024, 2, 29)
MOMENT = dt.datetime(2024, 2, 29, 12, 30, 0, 1, tzinfo=dt.timezone.utc)
# Few values of each type, so that many of them meet.
KINDS = {
    "int": (pa.int32(), [-(2**31), -1, 0, 1, 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
    "string": (pa.string(), ["", "a", "A", "ä", "a\u0308", "a "]),
    "float": (pa.float32(), [0.0, -0.0, 1.5, math.nan, math.inf, -math.inf]),
    "double": (pa.float64(), [0.0, -0.0, 1.5, math.nan, math.inf, 5e-324]),
    "decimal": (pa.decimal128(9, 2), [Decimal("0.00"), Decimal("-1.10"), Decimal("1234567.89")]),
    "date": (pa.date32(), [DAY, dt.date(1969, 12, 31), dt.date(1, 1, 1)]),
    "timestamp": (pa.timestamp("us", "UTC"), [MOMENT, MOMENT + dt.timedelta(microseconds=1)]),
    "binary": (pa.binary(), [b"", b"\x00", b"\x00\x00", b"a"]),
    "fixed": (pa.binary(2), [b"\x00\x00", b"\x00a"]),
    "boolean": (pa.bool_(), [True, False]),
}


def same(one, other, *, null_safe: bool) -> bool:
    if one is None or other is None:
        return null_safe and one is None and other is None
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    return one == other


def expected(source, target, null_safe) -> list[tuple[int, int]]:
    return [
        (t, s)
        for t, wanted in enumerate(target)
        for s, held in enumerate(source)
        if all(map(lambda a, b, safe: same(a, b, null_safe=safe), wanted, held, null_safe))
    ]


def arrays(rows, types) -> list[pa.Array]:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(types)
    return [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]


def found(source, target, null_safe, types) -> list[tuple[int, int]]:
    """Return the matches; the way for many source rows must find the same ones."""
    one = pairs_of(source, target, null_safe, types)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rowlake.rowlevel.index._MANY_ROWS", 1)
        assert pairs_of(source, target, null_safe, types) == one
    return one


def pairs_of(source, target, null_safe, types) -> list[tuple[int, int]]:
    pairs = KeyIndex(arrays(source, types), null_safe).probe(arrays(target, types))
    return list(zip(pairs.target.tolist(), pairs.source.tolist(), strict=True))


@st.composite
def sides(draw):
    kinds = [
        KINDS[name] for name in draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=3))
    ]
    row = st.tuples(*(st.none() | st.sampled_from(values) for _, values in kinds))
    rows = st.lists(row, max_size=12)
    null_safe = [draw(st.booleans()) for _ in kinds]
    return draw(rows), draw(rows), null_safe, [kind for kind, _ in kinds]


@settings(max_examples=300, deadline=None)
@given(sides())
def test_all_pairs_of_equal_keys_are_found_in_order(given_sides):
    source, target, null_safe, types = given_sides
    assert found(source, target, null_safe, types) == expected(source, target, null_safe)


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_of_key(kind):
    arrow, values = KINDS[kind]
    rows = [(value,) for value in [*values, None, *values]]
    for null_safe in ([True], [False]):
        assert found(rows, rows, null_safe, [arrow]) == expected(rows, rows, null_safe)


def test_nans_of_all_bits_are_one_key():
    bits = [0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000]
    odd = pa.array(np.array(bits, np.uint64).view(np.float64))
    pairs = KeyIndex([odd], [False]).probe([pa.array([math.nan, 1.0])])
    assert (pairs.target.tolist(), pairs.source.tolist()) == ([0, 0, 0], [0, 1, 2])
    assert struct.pack("<d", odd[1].as_py()) != struct.pack("<d", math.nan)


def test_rows_are_known_by_the_numbers_they_were_given():
    index = KeyIndex([pa.array([7, 8, 7])], [False], np.array([10, 20, 30]))
    pairs = index.probe([pa.array([8, 7])])
    assert (pairs.target.tolist(), pairs.source.tolist()) == ([0, 1, 1], [20, 10, 30])


def test_chunks_and_slices_are_taken():
    source = pa.chunked_array([[1, 2], [], [3]])
    target = pa.array([9, 3, 2, 1]).slice(1)
    pairs = KeyIndex([source], [False]).probe([target])
    assert (pairs.target.tolist(), pairs.source.tolist()) == ([0, 1, 2], [2, 1, 0])


def test_an_empty_side_matches_nothing():
    none = pa.array([], pa.int64())
    assert len(KeyIndex([none], [True]).probe([pa.array([1, None])])) == 0
    assert len(KeyIndex([pa.array([1, None])], [True]).probe([none])) == 0
    nulls = pa.array([None, None], pa.int64())
    assert len(KeyIndex([nulls], [False]).probe([nulls])) == 0
    assert len(KeyIndex([nulls, nulls], [True, True]).probe([nulls, nulls])) == 4


def test_many_keys_of_two_columns():
    numbers = np.arange(50_000)
    left, right = pa.array(numbers % 250), pa.array(numbers // 250)
    index = KeyIndex([left, right], [False, False])
    order = np.random.default_rng(1).permutation(numbers)
    pairs = index.probe([left.take(pa.array(order)), right.take(pa.array(order))])
    assert np.array_equal(pairs.source, order)
    assert np.array_equal(pairs.target, numbers)


def test_whole_numbers_far_apart_are_matched_among_many_rows():
    count = 40_000
    tickets = np.repeat(np.arange(count // 10) * 7, 10)
    items = np.tile(np.arange(10), count // 10)
    source = [pa.array(tickets), pa.array(items, pa.int32())]
    wanted = [0, 7, 8, -(2**63), 2**63 - 1, None, 7]
    target = [pa.array(wanted, pa.int64()), pa.array([3, 9, 3, 3, 3, 3, None], pa.int32())]
    pairs = KeyIndex(source, (True, True)).probe(target)
    assert (pairs.target.tolist(), pairs.source.tolist()) == ([0, 1], [3, 19])
