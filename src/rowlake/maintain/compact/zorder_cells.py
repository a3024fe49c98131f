"""Rows distributed by cells of a space of several columns, one cell for each new file.

A curve cut into files of equal size leaves files that cross its large jumps, whose bounds are wide.
Here the cuts are made first: a column is cut into slabs, each slab by the next column, and so on,
at the quantiles of the rows that are there, until there are as many cells as files. Each column is
cut about as often, so a filter on any of them skips about the same share of files: with n files and
d columns all but n^(-1/d). Columns of few values are cut first, since others can make up for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

import numpy as np

from rowlake.maintain.compact.zcurve import ColumnRanges, bits_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from numpy.typing import NDArray

    from rowlake.maintain.compact.row_keys import Keys

    Numbers = NDArray[np.int64]
    Leaf = Callable[[Numbers, int], "Tree"]


@dataclass(frozen=True)
class Slabs:
    """A column cut at some numbers; `below` has what each slab is cut into, or a cell's number."""

    column: int
    cuts: Numbers
    below: tuple[Tree, ...]


Tree = Union["Slabs", int]


@dataclass(frozen=True)
class Cells:
    """Cells of keys; those of file i have the numbers from i * `per_file` on."""

    keys: Keys
    columns: tuple[ColumnRanges, ...]
    tree: Tree
    count: int

    @classmethod
    def of(cls, keys: Keys, sample: pa.RecordBatch, files: int, per_file: int = 1) -> Cells:
        """Return cells of about the same number of rows each."""
        bits = bits_of(sample.num_columns)
        columns = tuple(ColumnRanges.of(values, bits) for values in sample.columns)
        numbers = [
            ranges.numbers(values) for ranges, values in zip(columns, sample.columns, strict=True)
        ]
        tree = _Cutting(numbers, per_file).into_files(np.arange(len(sample)), files)
        return cls(keys, columns, tree, files * per_file)

    def numbers(self, rows: pa.RecordBatch) -> Numbers:
        """Return the cell of each row."""
        keys = self.keys.of(rows)
        columns = [
            ranges.numbers(values)
            for ranges, values in zip(self.columns, keys.columns, strict=True)
        ]
        found = np.empty(len(keys), np.int64)
        waiting: list[tuple[Tree, Numbers]] = [(self.tree, np.arange(len(keys)))]
        while waiting:
            tree, places = waiting.pop()
            if isinstance(tree, int):
                found[places] = tree
                continue
            slabs = np.searchsorted(tree.cuts, columns[tree.column][places], side="right")
            waiting += zip(tree.below, _by_slab(places, slabs, len(tree.below)), strict=True)
        return found


@dataclass(frozen=True)
class _Cutting:
    """The numbers of a sample, by column, and into how many cells a file is cut."""

    columns: list[Numbers]
    per_file: int

    def into_files(self, places: Numbers, files: int) -> Tree:
        every = self._fewest_first(places)
        return self._cut(places, every, range(files), self._file_cells)

    def _file_cells(self, places: Numbers, file: int) -> Tree:
        first = file * self.per_file
        cells = range(first, first + self.per_file)
        return self._cut(places, self._fewest_first(places), cells, lambda _, cell: cell)

    def _fewest_first(self, places: Numbers) -> list[int]:
        """Return the columns by how many numbers they have; of equal ones the last comes first."""
        distinct = [len(np.unique(column[places])) for column in self.columns]
        return sorted(range(len(self.columns)), key=lambda column: (distinct[column], -column))

    def _cut(self, places: Numbers, columns: list[int], cells: range, leaf: Leaf) -> Tree:
        """Cut the rows at some places by these columns, the first one first."""
        if len(cells) == 1 or not columns:
            return leaf(places, cells[0])
        column, others = columns[0], columns[1:]
        wanted = round(len(cells) ** (1 / len(columns)))
        numbers = self.columns[column][places]
        cuts = _cuts(numbers, min(max(wanted, 1), len(cells)), len(cells))
        if not len(cuts):
            return self._cut(places, others, cells, leaf)
        slabs = np.searchsorted(cuts, numbers, side="right")
        shares = _shares(np.bincount(slabs, minlength=len(cuts) + 1), len(cells))
        starts = np.concatenate([[0], np.cumsum(shares)]).tolist()
        below = tuple(
            self._cut(some, others, cells[starts[slab] : starts[slab + 1]], leaf)
            for slab, some in enumerate(_by_slab(places, slabs, len(shares)))
        )
        return Slabs(column, cuts, below)


def _by_slab(places: Numbers, slabs: Numbers, count: int) -> list[Numbers]:
    """Return the places of each slab."""
    small = slabs.astype(np.uint16 if count > 256 else np.uint8)  # sorted in linear time
    ordered = places[np.argsort(small, kind="stable")]
    return np.split(ordered, np.cumsum(np.bincount(slabs, minlength=count))[:-1])


def _cuts(numbers: Numbers, slabs: int, cells: int) -> Numbers:
    """Return where to cut into slabs of whole cells, all cells of as many rows; none is empty."""
    if slabs < 2 or not len(numbers):
        return np.empty(0, np.int64)
    ordered = np.sort(numbers)
    before = np.arange(1, slabs) * cells // slabs
    cuts = np.unique(ordered[before * len(ordered) // cells])
    return np.asarray(cuts[cuts > ordered[0]])


def _shares(rows: Numbers, cells: int) -> Numbers:
    """Return how many cells each slab gets, by its rows; at least one."""
    wanted = rows / rows.sum() * cells
    shares: Numbers = np.maximum(np.floor(wanted + 1e-9), 1).astype(np.int64)
    while shares.sum() > cells:
        shares[np.argmax(np.where(shares > 1, shares - wanted, -np.inf))] -= 1
    while shares.sum() < cells:
        shares[np.argmax(wanted - shares)] += 1
    return shares
