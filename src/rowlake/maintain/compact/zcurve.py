"""Values as numbers of ranges, and numbers of ranges along a Z-curve.

A column is cut into ranges at the quantiles of a sample, so a column of few values, or of many that
lie close together, tells rows apart as well as any other. Numbers rise with values; nulls come
first, NaN last. Decimals are compared as floats, which keeps their order but for ties.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import InvalidStatementError
from rowlake.maintain.compact.sort_ranges import edges_passed
from rowlake.model.schema import type_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rowlake.model.schema import Schema

    Numbers = NDArray[np.int64]

MOST_BITS = 12  # of one column: ranges of 1/4096 of the rows
ALL_BITS = 63
SAMPLE_ROWS = 1 << 17
_OUTSIDE = 3  # nulls, what is below the first edge, NaN


def check_columns(schema: Schema, ids: Sequence[int]) -> None:
    """Refuse columns that cannot be on a Z-curve."""
    for number in ids:
        name, found = ".".join(schema.paths[number]), schema.by_id[number]
        kind = type_name(found) or found.type
        is_plain = not pa.types.is_nested(found.type) and not pa.types.is_null(found.type)
        if not is_plain or str(kind).partition("(")[0] in ("variant", "geometry", "geography"):
            raise InvalidStatementError(
                f"Cannot Z-order by {name}: its type {kind} has no order. Choose columns of plain "
                "types, or a field of a struct by its path."
            )
        if any(pa.types.is_list(each) or pa.types.is_map(each) for each in _above(schema, number)):
            raise InvalidStatementError(
                f"Cannot Z-order by {name}: it is inside a list or a map, so a row has many of it."
            )
    if len(set(ids)) < len(ids):
        raise InvalidStatementError("Cannot Z-order by a column twice.")
    if len(ids) > ALL_BITS:
        raise InvalidStatementError(f"Cannot Z-order by more than {ALL_BITS} columns.")


def _above(schema: Schema, number: int) -> list[pa.DataType]:
    path = schema.paths[number]
    found = (schema.find(path[:depth], case_sensitive=True) for depth in range(1, len(path)))
    return [each.type for each in found if each is not None]


def bits_of(columns: int) -> int:
    """Return how many bits each column gets."""
    return min(MOST_BITS, ALL_BITS // max(columns, 1))


@dataclass(frozen=True)
class ColumnRanges:
    """The edges of one column's ranges: numbers, or values where Arrow alone compares them."""

    edges: Any

    @classmethod
    def of(cls, values: pa.Array, bits: int) -> ColumnRanges:
        """Return ranges of about equal numbers of rows, few enough for these bits."""
        most = max((1 << bits) - _OUTSIDE, 1)
        known = values.drop_null()
        numbers = _numbers(known)
        if numbers is None:
            ordered = known.take(pc.array_sort_indices(known))
            return cls(pc.unique(ordered.take(pa.array(_quantiles(len(ordered), most)))))
        if numbers.dtype.kind == "f":
            numbers = numbers[~np.isnan(numbers)]
        ordered = np.sort(numbers)
        distinct = _distinct(ordered)
        if len(distinct) <= most:
            return cls(distinct)
        return cls(_distinct(ordered[_quantiles(len(ordered), most)]))

    def numbers(self, values: pa.Array) -> Numbers:
        """Return the number of the range of each value."""
        found = _numbers(values)
        if found is None:
            return self._numbers_by_arrow(values)
        ids = np.searchsorted(self.edges, found, side="right") + 1
        if found.dtype.kind == "f":
            ids[np.isnan(found)] = len(self.edges) + 2
        if values.null_count:
            ids[np.asarray(values.is_null())] = 0
        return ids

    def _numbers_by_arrow(self, values: pa.Array) -> Numbers:
        coded = values.dictionary_encode()
        ids = np.zeros(len(coded.dictionary) + 1, np.int64)
        ids[1:] = 1 + edges_passed(_places, self.edges, coded.dictionary, edges_first=True)
        return np.asarray(ids[np.asarray(coded.indices.fill_null(-1)) + 1])


def _places(values: pa.Array) -> NDArray[Any]:
    return np.asarray(pc.array_sort_indices(values))


def _distinct(ordered: NDArray[Any]) -> NDArray[Any]:
    is_new = np.ones(len(ordered), np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new]


def _quantiles(count: int, most: int) -> Numbers:
    """Return at most this many places, spread evenly over the sorted values."""
    wanted = min(count, most)
    return (np.arange(wanted) * count) // max(wanted, 1)


def _numbers(values: pa.Array) -> NDArray[Any] | None:
    """Return values as numbers in the same order, anything for null; None for text and bytes."""
    kind = values.type
    if pa.types.is_boolean(kind):
        values = values.cast(pa.uint8())
    elif pa.types.is_decimal(kind):
        values = values.cast(pa.float64())
    elif pa.types.is_temporal(kind):
        values = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif not pa.types.is_integer(kind) and not pa.types.is_floating(kind):
        return None
    return np.asarray(values.fill_null(0) if values.null_count else values)


def z_values(columns: Sequence[Numbers], bits: int) -> NDArray[np.uint64]:
    """Return the place of each row along the curve: the bits of its numbers, interleaved."""
    count = len(columns)
    spread = _spread(bits, count)
    found = np.zeros(len(columns[0]), np.uint64)
    for place, numbers in enumerate(columns):
        found |= spread[numbers] << np.uint64(count - 1 - place)
    return found


@lru_cache(maxsize=16)
def _spread(bits: int, step: int) -> NDArray[np.uint64]:
    """Return each number with its bits spread apart by this distance."""
    numbers = np.arange(1 << bits, dtype=np.uint64)
    found = np.zeros(1 << bits, np.uint64)
    for bit in range(bits):
        one = (numbers >> np.uint64(bit)) & np.uint64(1)
        found |= one << np.uint64(bit * step)
    return found


def z_places(keys: pa.RecordBatch) -> pa.Array:
    """Return the order of rows along the curve of their own values."""
    bits = bits_of(keys.num_columns)
    step = max(len(keys) // SAMPLE_ROWS, 1)
    some = pa.array(np.arange(0, len(keys), step))
    columns = [ColumnRanges.of(values.take(some), bits).numbers(values) for values in keys.columns]
    return pa.array(np.argsort(z_values(columns, bits), kind="stable"))
