"""Rows distributed by ranges of their sort keys: what is in one range comes before the next one.

Edges are quantiles of a sample. A key that is so frequent that it is an edge more than once is
spread over the ranges between, so that no range gets too many rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rowlake.maintain.compact.row_keys import Keys

    Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class SortRanges:
    """Ranges of keys; rows of range i have i edges that are not above them."""

    keys: Keys
    edges: pa.RecordBatch
    has_equal_edges: bool

    @classmethod
    def of(cls, keys: Keys, sample: pa.RecordBatch, count: int) -> SortRanges:
        """Return this many ranges of about equal numbers of rows."""
        places = keys.sorted_places(sample)
        cuts = np.arange(1, count) * len(sample) // max(count, 1) if len(sample) else np.arange(0)
        edges = sample.take(places.take(pa.array(cuts, pa.int64())))
        ranges = cls(keys, edges, has_equal_edges=False)
        same = ranges._passed(edges, edges_first=True) - ranges._passed(edges, edges_first=False)
        return cls(keys, edges, has_equal_edges=bool((same > 1).any()))

    @property
    def count(self) -> int:
        """How many ranges there are."""
        return len(self.edges) + 1

    def numbers(self, rows: pa.RecordBatch) -> Numbers:
        """Return the range of each row."""
        keys = self.keys.of(rows)
        passed = self._passed(keys, edges_first=True)
        if not self.has_equal_edges:
            return passed
        below = self._passed(keys, edges_first=False)
        equal = passed - below
        turn = np.arange(len(keys)) % np.maximum(equal, 1)
        return np.where(equal > 1, below + 1 + turn, passed)

    def _passed(self, keys: pa.RecordBatch, *, edges_first: bool) -> Numbers:
        """Return how many edges are below each key, or with `edges_first` not above it."""
        return edges_passed(self._places, self.edges, keys, edges_first=edges_first)

    def _places(self, joined: pa.RecordBatch) -> NDArray[Any]:
        return np.asarray(self.keys.sorted_places(joined))


def edges_passed(order: Any, edges: Any, values: Any, *, edges_first: bool) -> Numbers:
    """Return the edges before each value in a stable order of both, equal ones first or last.

    `order` gives the places of a batch, or of an array, in their order.
    """
    parts = [edges, values] if edges_first else [values, edges]
    join = pa.concat_batches if isinstance(values, pa.RecordBatch) else pa.concat_arrays
    places = order(join(parts))
    start = 0 if edges_first else len(values)
    is_edge = (places >= start) & (places < start + len(edges))
    passed = np.cumsum(is_edge)
    numbers = np.empty(len(values), np.int64)
    numbers[places[~is_edge] - (len(edges) if edges_first else 0)] = passed[~is_edge]
    return numbers
