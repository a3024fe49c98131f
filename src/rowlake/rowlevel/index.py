"""Keys of source rows, ready to be looked up by keys of target rows.

Comes in: the key columns of some source rows. Goes out: pairs of (target row, source row) whose
keys are equal, as Spark joins them: null equals nothing, or null where the key is null-safe
(`<=>`); NaN equals NaN; -0.0 equals 0.0. Both sides must have the same Arrow types. No row of
either side becomes a Python object.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_NONE = np.empty(0, np.int64)
# With fewer source rows than this, hashing the first key leaves so few target rows that nothing
# is faster.
_MANY_ROWS = 1 << 15
_MOST_PACKED = 1 << 62


@dataclass(frozen=True)
class Pairs:
    """Matches: `target[i]` matches `source[i]`; by target row, then by source row."""

    target: Numbers
    source: Numbers

    def __len__(self) -> int:
        return len(self.target)


class KeyIndex:
    """Source rows by key; `rows` are the numbers of the rows that the keys belong to."""

    def __init__(
        self, keys: Sequence[pa.Array], null_safe: Sequence[bool], rows: Numbers | None = None
    ) -> None:
        self._null_safe = tuple(null_safe)
        self._values: list[pa.Array] = []
        self._dense: list[Numbers] = []
        rows = np.arange(len(keys[0]), dtype=np.int64) if rows is None else rows
        self._packed = _packing(keys) if len(rows) >= _MANY_ROWS else None
        if self._packed is not None:
            self._index_packed(self._packed, keys, rows)
            return
        codes = None
        for key, safe in zip(keys, null_safe, strict=True):
            one = _normalised(key)
            values = pc.unique(one).drop_null()
            self._values.append(values)
            own = _codes(one, values, null_safe=safe)
            kept = own >= 0
            if codes is None:
                rows, codes = rows[kept], own[kept]
                places = np.flatnonzero(kept)
            else:
                own = own[places]
                kept = own >= 0
                rows, codes, places = rows[kept], codes[kept], places[kept]
                joint = codes * (len(values) + 1) + own[kept]
                dense, codes = np.unique(joint, return_inverse=True)
                self._dense.append(dense)
        assert codes is not None
        order = np.argsort(codes, kind="stable")
        self._rows = rows[order]
        count = int(codes.max(initial=-1)) + 1
        self._starts = np.searchsorted(codes[order], np.arange(count + 1))

    def _index_packed(self, packing: _Packing, keys: Sequence[pa.Array], rows: Numbers) -> None:
        codes, _ = packing.codes(keys)
        order = np.argsort(codes, kind="stable")
        codes = codes[order]
        firsts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
        self._dense.append(codes[firsts])
        self._rows = rows[order]
        self._starts = np.append(firsts, len(codes))

    def probe(self, keys: Sequence[pa.Array]) -> Pairs:
        """Return the matches of target rows, numbered from 0."""
        if not len(self._rows):
            return Pairs(_NONE, _NONE)
        found, targets = self._codes_of(keys)
        counts = self._starts[found + 1] - self._starts[found]
        if (counts == 1).all():
            return Pairs(targets, self._rows[self._starts[found]])
        total = np.repeat(self._starts[found], counts)
        within = np.arange(len(total)) - np.repeat(np.cumsum(counts) - counts, counts)
        return Pairs(np.repeat(targets, counts), self._rows[total + within])

    def _codes_of(self, keys: Sequence[pa.Array]) -> tuple[Numbers, Numbers]:
        """Return the codes of the target rows that match, and their numbers."""
        if self._packed is not None:
            found, targets = self._packed.codes(keys)
            at, same = _places(found, self._dense[0])
            return at[same], targets[same]
        first = _codes(_normalised(keys[0]), self._values[0], null_safe=self._null_safe[0])
        targets = np.flatnonzero(first >= 0)
        codes = first[targets]
        for number, key in enumerate(keys[1:], start=1):
            # Only the rows that are left: most rows are gone after the first column.
            rest = _normalised(key.take(pa.array(targets)))
            values = self._values[number]
            own = _codes(rest, values, null_safe=self._null_safe[number])
            kept = own >= 0
            joint = codes[kept] * (len(values) + 1) + own[kept]
            at, same = _places(joint, self._dense[number - 1])
            targets, codes = targets[kept][same], at[same]
        # A null-safe null that no source row has lies beyond the codes.
        known = codes < len(self._starts) - 1
        return codes[known], targets[known]


@dataclass(frozen=True)
class _Packing:
    """Whole-number keys as one number each: columns that differ are far enough apart.

    `lower` and `upper` are the bounds of each column of the source. A target row outside of them,
    or with a null, matches nothing.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]

    def codes(self, keys: Sequence[pa.Array]) -> tuple[Numbers, Numbers]:
        """Return the numbers of the rows inside the bounds, and which rows these are."""
        columns = [_whole_numbers(key) for key in keys]
        inside = np.ones(len(columns[0]), np.bool_)
        for key, column, low, high in zip(keys, columns, self.lower, self.upper, strict=True):
            inside &= (column >= low) & (column <= high)
            if key.null_count:
                inside &= np.asarray(key.is_valid())
        rows = np.flatnonzero(inside)
        packed = np.zeros(len(rows), np.int64)
        for column, low, high in zip(columns, self.lower, self.upper, strict=True):
            packed *= high - low + 1
            packed += column[rows] - low
        return packed, rows


def _packing(keys: Sequence[pa.Array]) -> _Packing | None:
    """Return how to pack the keys of source rows; None where a key has other types or nulls."""
    if any(not _is_whole(key.type) or key.null_count for key in keys):
        return None
    columns = [_whole_numbers(key) for key in keys]
    lower = tuple(int(column.min()) for column in columns)
    upper = tuple(int(column.max()) for column in columns)
    spans = [high - low + 1 for low, high in zip(lower, upper, strict=True)]
    return _Packing(lower, upper) if prod(spans) <= _MOST_PACKED else None


def _is_whole(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_int32(kind) or types.is_int64(kind) or types.is_date32(kind))


def _whole_numbers(key: Any) -> Numbers:
    """Return integers and dates as longs; nulls are any number."""
    array = _normalised(key)
    array = array.view(pa.int32()) if pa.types.is_date32(array.type) else array
    return np.asarray(array.fill_null(0) if array.null_count else array).astype(np.int64)


def _places(wanted: Numbers, ordered: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
    """Return the place of each number among ordered ones, and which of them are there."""
    at = np.searchsorted(ordered, wanted)
    same = at < len(ordered)
    same[same] = ordered[at[same]] == wanted[same]
    return at, same


def _codes(keys: pa.Array, values: pa.Array, *, null_safe: bool) -> Numbers:
    """Return the place of each key among the values; -1 for none; nulls come last if they match."""
    found = pc.index_in(keys, value_set=values, skip_nulls=True)
    codes = np.asarray(found.fill_null(-1)).astype(np.int64)
    if null_safe and keys.null_count:
        codes[np.asarray(keys.is_null())] = len(values)
    return codes


def _normalised(keys: Any) -> pa.Array:
    """Return keys as one array in which equal keys are the same bits."""
    array = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    if pa.types.is_floating(array.type):
        # Adding zero turns -0.0 into 0.0; NaNs get one bit pattern.
        array = pc.add(array, pa.scalar(0.0, array.type))
        nan = pa.scalar(float("nan"), array.type)
        return pc.if_else(pc.is_nan(array), nan, array)
    return array
