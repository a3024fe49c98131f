from __future__ import annotations

import functools
import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowlake.model.partition import SortField
from rowlake.model.schema import Schema
from rowlake.write.sort import sort_batches
from tests.write_helpers import column

FIELDS = [column("f", pa.float64(), 1), column("t", pa.string(), 2), column("n", pa.int64(), 3)]
SCHEMA = Schema(pa.schema(FIELDS))
NUMBERS = st.none() | st.sampled_from([0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf])


def compare(one: object, other: object, key: SortField) -> int:
    if one is None or other is None:
        same = (one is None) == (other is None)
        return 0 if same else (-1 if (one is None) == key.nulls_first else 1)
    left, right = (
        (math.isnan(x), 0 if math.isnan(x) else x) if isinstance(x, float) else x.encode()
        for x in (one, other)
    )
    found = (left > right) - (left < right)
    return found if key.ascending else -found


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(
        st.tuples(NUMBERS, st.none() | st.sampled_from(["a", "b", "ž"])), min_size=1, max_size=15
    ),
    flags=st.tuples(*[st.booleans()] * 4),
)
def test_rows_are_sorted_as_the_spec_says(rows, flags):
    keys = (
        SortField(1, "identity", flags[0], flags[1]),
        SortField(2, "identity", flags[2], flags[3]),
    )
    batch = pa.record_batch(
        [
            pa.array([row[0] for row in rows], pa.float64()),
            pa.array([row[1] for row in rows], pa.string()),
            pa.array(range(len(rows)), pa.int64()),
        ],
        schema=SCHEMA.arrow,
    )

    def order(one: int, other: int) -> int:
        for place, key in enumerate(keys):
            found = compare(rows[one][place], rows[other][place], key)
            if found:
                return found
        return one - other

    expected = sorted(range(len(rows)), key=functools.cmp_to_key(order))
    (found,) = sort_batches([batch], keys, SCHEMA)
    assert found["n"].to_pylist() == expected


@pytest.mark.parametrize("transform", ["truncate[10]", "bucket[4]"])
def test_transforms_order_rows_and_equal_ones_stay(transform):
    from rowlake.model.transform import apply_transform

    numbers = pa.array([25, 3, 21, 7, None, 14], pa.int64())
    batch = pa.record_batch(
        [pa.nulls(6, pa.float64()), pa.nulls(6, pa.string()), numbers], schema=SCHEMA.arrow
    )
    (found,) = sort_batches([batch], (SortField(3, transform),), SCHEMA)
    keys = apply_transform(transform, numbers).to_pylist()
    places = sorted(range(6), key=lambda place: -1 if keys[place] is None else keys[place])
    assert found["n"].to_pylist() == [numbers[place].as_py() for place in places]


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", "ž"])), max_size=6),
    ascending=st.tuples(st.booleans(), st.booleans()),
    is_sorted=st.booleans(),
)
def test_rows_that_are_in_order_and_others_come_out_in_order(rows, ascending, is_sorted):
    def ranked(row: tuple[int, str]) -> tuple[int, int]:
        number, letter = row[0], "abž".index(row[1])
        return (number if ascending[0] else -number, letter if ascending[1] else -letter)

    rows = sorted(rows, key=ranked) if is_sorted else rows
    batch = pa.record_batch(
        [
            pa.array([float(place) for place in range(len(rows))], pa.float64()),
            pa.array([row[1] for row in rows], pa.string()),
            pa.array([row[0] for row in rows], pa.int64()),
        ],
        schema=SCHEMA.arrow,
    )
    keys = (SortField(3, "identity", ascending[0]), SortField(2, "identity", ascending[1]))
    found = pa.Table.from_batches(sort_batches([batch], keys, SCHEMA), SCHEMA.arrow)
    order = sorted(range(len(rows)), key=lambda place: ranked(rows[place]))
    assert found["f"].to_pylist() == [float(place) for place in order]
