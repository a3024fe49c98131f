"""Where rows went when data files were rewritten without changing any row.

A compaction task reads its sources one after the other and writes its outputs one after the other,
so counts give a row's place: the only positions kept are those of rows left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Positions = NDArray[np.int64]

Partition = tuple["bytes | None", ...]


@dataclass(frozen=True)
class Rewritten:
    """A data file that was rewritten: `dropped` are the positions of rows that were deleted."""

    location: str
    spec_id: int
    partition: Partition
    record_count: int
    dropped: Positions

    @property
    def live(self) -> int:
        """How many rows were carried over."""
        return self.record_count - len(self.dropped)


@dataclass(frozen=True)
class Output:
    """A data file that was written in place of others."""

    location: str
    spec_id: int
    partition: Partition
    record_count: int


@dataclass(frozen=True)
class RewrittenPart:
    """What one task replaced by what, in the order of the rows.

    `keeps_order`: the rows of all outputs, one after the other, are the rows of all sources.
    """

    sources: tuple[Rewritten, ...]
    outputs: tuple[Output, ...]
    keeps_order: bool

    def placed(self, rows: Mapping[str, Positions | None]) -> dict[str, Positions]:
        """Return where rows of the sources are in the outputs; None stands for all of a source.

        Rows that were left out are nowhere.
        """
        found = [np.empty(0, np.int64)]
        start = 0
        for source in self.sources:
            if source.location in rows:
                found.append(start + _ranks(source, rows[source.location]))
            start += source.live
        return self._by_output(np.sort(np.concatenate(found)))

    def _by_output(self, ranks: Positions) -> dict[str, Positions]:
        by_output: dict[str, Positions] = {}
        start = 0
        for output in self.outputs:
            low, high = np.searchsorted(ranks, (start, start + output.record_count))
            if low < high:
                by_output[output.location] = ranks[low:high] - start
            start += output.record_count
        return by_output


def _ranks(source: Rewritten, positions: Positions | None) -> Positions:
    """Return the numbers of rows among those carried over."""
    if positions is None:
        return np.arange(source.live)
    kept = np.setdiff1d(positions, source.dropped)
    return kept - np.searchsorted(source.dropped, kept)
