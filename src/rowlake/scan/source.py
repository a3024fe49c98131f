"""Data files as the kernel sees them: a schema with ids, units to read, batches.

A unit is what a format can read by itself: a row group, a stripe, a run of Avro blocks. Units
know their absolute row positions, so that a split of a file counts like the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from rowlake.model.predicate import Predicate
    from rowlake.model.task import FileTask
    from rowlake.scan.ids import FileSchema
    from rowlake.scan.project import Columns


@dataclass(frozen=True)
class Unit:
    """A part of a file; `offset` is where it starts in bytes, `first_row` its first position."""

    index: int
    offset: int
    first_row: int
    num_rows: int


class DataFileSource(Protocol):
    """One open data file."""

    location: str
    schema: FileSchema
    units: list[Unit]

    def kept(self, leaves: frozenset[int]) -> frozenset[int]:
        """Return the leaves that come when these are asked for: some formats give more."""

    def read(self, unit: Unit, kept: frozenset[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield a unit's rows in order, with just these leaves (at least one)."""

    def may_match(
        self, units: list[Unit], predicate: Predicate, columns: Columns
    ) -> NDArray[np.bool_]:
        """Return which units may hold a row that the predicate selects."""

    def close(self) -> None:
        """Close the file."""


def in_split(units: list[Unit], task: FileTask) -> list[Unit]:
    """Return the units that a split reads."""
    return [unit for unit in units if task.holds(unit.offset)]
