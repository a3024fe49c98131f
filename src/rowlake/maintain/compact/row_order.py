"""The order of rows in the files of a compaction, and how rows are distributed to files.

Comes in: rows of a group of files, or a sample of their keys. Goes out: rows in order, or ranges of
keys (`SortRanges`, `Cells`) by which each file gets its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowlake.maintain.compact.row_keys import Keys
from rowlake.maintain.compact.sort_ranges import SortRanges
from rowlake.maintain.compact.zcurve import SAMPLE_ROWS, z_places
from rowlake.maintain.compact.zorder_cells import Cells
from rowlake.model.partition import SortField
from rowlake.write.sort import SLICE_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.model.schema import Schema

Ranges = SortRanges | Cells


@dataclass(frozen=True)
class RowOrder:
    """By partitions where rows go into several (`clusters`), then by sort keys or along a Z-curve.

    `curve` has the ids of columns; `schema` is that of the files.
    """

    schema: Schema
    clusters: tuple[SortField, ...] = ()
    sort: tuple[SortField, ...] = ()
    curve: tuple[int, ...] = ()

    @property
    def keys(self) -> Keys:
        """What rows are told apart by."""
        return Keys((*self.clusters, *self.sort, *self._curve), self.schema)

    @property
    def _curve(self) -> tuple[SortField, ...]:
        return tuple(SortField(number, "identity") for number in self.curve)

    @property
    def _has_cells(self) -> bool:
        return bool(self.curve) and not self.clusters

    def ranges(self, sample: pa.RecordBatch, files: int, per_file: int = 1) -> Ranges:
        """Return ranges for this many files, several per file, from a sample of keys."""
        if self._has_cells:
            return Cells.of(self.keys, sample, files, per_file)
        return SortRanges.of(self.keys, sample, files * per_file)

    def parts(self, rows: pa.RecordBatch, files: int) -> Iterator[list[pa.RecordBatch]]:
        """Yield the rows of each output file, in order; empty files are left out."""
        if self._has_cells and files > 1:
            step = max(len(rows) // SAMPLE_ROWS, 1)
            some = pa.array(np.arange(0, len(rows), step))
            cells = self.ranges(self.keys.of(rows).take(some), files)
            for _, part in by_number(rows, cells.numbers(rows)):
                yield self.in_order(part)
            return
        places = self._places(rows)
        edges = np.arange(files + 1) * len(rows) // files
        for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            if start < end:
                yield _taken(rows, places.slice(start, end - start))

    def in_order(self, rows: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Return rows in order, in slices."""
        return _taken(rows, self._places(rows))

    def _places(self, rows: pa.RecordBatch) -> pa.Array:
        if not self.curve:
            keys = self.keys
            return keys.sorted_places(keys.of(rows))
        places = z_places(Keys(self._curve, self.schema).of(rows))
        if not self.clusters:
            return places
        clusters = Keys(self.clusters, self.schema)
        return places.take(clusters.sorted_places(clusters.of(rows).take(places)))


def _taken(rows: pa.RecordBatch, places: pa.Array) -> list[pa.RecordBatch]:
    return [
        rows.take(places.slice(start, SLICE_ROWS)) for start in range(0, len(places), SLICE_ROWS)
    ]


def by_number(
    rows: pa.RecordBatch, numbers: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each number that there is, numbers rising."""
    order = np.argsort(numbers, kind="stable")
    held = numbers[order]
    edges = np.flatnonzero(np.diff(held)) + 1
    starts = [0, *edges.tolist()] if len(held) else []
    for start, end in zip(starts, [*edges.tolist(), len(held)], strict=False):
        yield int(held[start]), rows.take(pa.array(order[start:end]))
