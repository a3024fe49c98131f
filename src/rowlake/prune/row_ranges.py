"""Which rows of one table belong to rows of another, as ranges instead of pairs.

Deletes sorted by (key, sequence number) have all that apply to a data file side by side, so one
search per data file finds them, however many there are; pairs are made only where they have to
be looked at one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Numbers = np.ndarray[Any, Any]
    PairTest = Callable[[Numbers, Numbers], Numbers]

PAIR_BLOCK = 1 << 20
MOST_PAIRS = 1 << 28  # more candidates than this are not looked at one by one


@dataclass(frozen=True)
class Ranges:
    """For each data file, `members[starts:ends]`: rows of deletes, oldest first."""

    members: Numbers
    starts: Numbers
    ends: Numbers

    @property
    def counts(self) -> Numbers:
        """How many members each data file has."""
        return np.asarray(self.ends - self.starts)

    def without(self, rows: Numbers) -> Ranges:
        """Return the ranges with those of the flagged data files empty."""
        return Ranges(self.members, self.starts, np.where(rows, self.starts, self.ends))

    def kept(self, test: PairTest) -> Ranges:
        """Return only the pairs (data row, delete row) that pass; all, if they are too many."""
        total = int(self.counts.sum())
        if not total or total > MOST_PAIRS:
            return self
        found = [(data[passed], deletes[passed]) for data, deletes, passed in self._tested(test)]
        data, members = (np.concatenate(part) for part in zip(*found, strict=True))
        ends = np.searchsorted(data, np.arange(len(self.starts)), side="right")
        return Ranges(members, np.concatenate([[0], ends[:-1]]), ends)

    def _tested(self, test: PairTest) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
        for data, deletes in self.pairs():
            yield data, deletes, test(data, deletes)

    def pairs(self) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield (data rows, delete rows) of blocks of pairs, in the order of data rows."""
        reached = np.cumsum(self.counts)
        first = 0
        while first < len(reached):
            done = reached[first - 1] if first else 0
            last = max(int(np.searchsorted(reached, done + PAIR_BLOCK, side="right")), first + 1)
            counts = self.counts[first:last]
            data = np.repeat(np.arange(first, last), counts)
            before = np.repeat(np.cumsum(counts) - counts, counts)
            places = np.repeat(self.starts[first:last], counts) + np.arange(len(data)) - before
            yield data, self.members[places]
            first = last


@dataclass(frozen=True)
class Keyed:
    """Rows with a key (-1: none) and a sequence number each."""

    rows: Numbers
    keys: Numbers
    sequence_numbers: Numbers


def ranges_by_key(deletes: Keyed, data: Keyed, *, newer: bool) -> Ranges:
    """Return, per data file, the deletes of its key that are as new as it is, or `newer`."""
    order = np.lexsort((deletes.sequence_numbers, deletes.keys))
    steps = np.unique(deletes.sequence_numbers)
    width = len(steps) + 1
    ranks = np.searchsorted(steps, deletes.sequence_numbers[order])
    codes = deletes.keys[order] * width + ranks
    first = np.searchsorted(steps, data.sequence_numbers, side="right" if newer else "left")
    starts = np.searchsorted(codes, data.keys * width + first)
    ends = np.searchsorted(codes, (data.keys + 1) * width)
    return Ranges(deletes.rows[order], starts, np.where(data.keys < 0, starts, ends))


def partition_keys(left: pa.StructArray, right: pa.StructArray) -> tuple[Numbers, Numbers]:
    """Return numbers that are equal exactly where partitions are (spec, Scan Planning, note 3)."""
    size = len(left) + len(right)
    keys, distinct = np.zeros(size, dtype=np.int64), 1
    for position in range(left.type.num_fields):
        parts = [pc.struct_field(side, [position]) for side in (left, right)]
        codes, count = _codes(pa.concat_arrays(parts))
        keys, distinct = keys * count + codes, distinct * count
        if distinct > size:
            found, keys = np.unique(keys, return_inverse=True)
            distinct = len(found)
    return keys[: len(left)], keys[len(left) :]


def _codes(values: pa.Array) -> tuple[Numbers, int]:
    """Return a number per distinct value, null included; floats by their bits, NaNs alike."""
    if pa.types.is_floating(values.type):
        same = pc.if_else(pc.is_nan(values), pa.scalar(np.nan, values.type), values)
        whole = pa.int32() if pa.types.is_float32(values.type) else pa.int64()
        values = same.view(whole)
    if pa.types.is_null(values.type):
        return np.zeros(len(values), dtype=np.int64), 1
    encoded = values.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64), max(len(encoded.dictionary), 1)


def path_codes(paths: pa.Array, wanted: pa.Array) -> Numbers:
    """Return the place of each path among the wanted ones, -1 where it is not among them."""
    return np.asarray(pc.index_in(paths, value_set=wanted).fill_null(-1)).astype(np.int64)
