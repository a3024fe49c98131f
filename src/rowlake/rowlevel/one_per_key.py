"""Staged rows in any order -> staged rows sorted by their keys, one for each.

Comes in: what tasks staged as they read the source, distributed by partition and by slices of the
keys. Goes out: rows of `STAGED` again. A unit has all rows of its keys, and fits into the memory
of a task, so it is sorted there as a whole.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from rowlake.plan.tasks import SPLIT_BYTES, pack, task_count
from rowlake.rowlevel.operation import PART_BYTES
from rowlake.rowlevel.staged import describe, part_of_slice, pieces_of, read_pieces
from rowlake.rowlevel.unique import key_order, unique_rows
from rowlake.storage.files import Storage
from rowlake.write.sort import sort_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from rowlake.rowlevel.staged import Piece, StageContext

# Units may be this many parts large: sorting takes the room of two more copies.
_MOST_PARTS = 4


@dataclass(frozen=True)
class Unit:
    """All rows of some keys, of one part of the source."""

    part: int
    pieces: tuple[Piece, ...]

    @property
    def size_in_bytes(self) -> int:
        """The bytes of all rows."""
        return sum(piece.size_in_bytes for piece in self.pieces)


def units_of(staged: pa.Table) -> list[Unit]:
    """Return what was staged as units."""
    found: dict[int, list[Piece]] = defaultdict(list)
    for piece in pieces_of(staged):
        found[piece.part].append(piece)
    return [Unit(part_of_slice(number), tuple(found[number])) for number in sorted(found)]


def slices_for(size_in_bytes: int) -> int:
    """Return into how many slices so many bytes of a part are dealt."""
    return max(ceil(size_in_bytes / PART_BYTES), 1)


def are_small(units: list[Unit]) -> bool:
    """Return whether each unit fits into the memory of a task."""
    return all(unit.size_in_bytes <= _MOST_PARTS * PART_BYTES for unit in units)


def unit_tasks(units: list[Unit], slots: int) -> list[tuple[Unit, ...]]:
    """Return the units of each task."""
    weights = np.array([unit.size_in_bytes for unit in units], float)
    count = task_count(float(weights.sum()), SPLIT_BYTES, slots)
    return [tuple(units[place] for place in places.tolist()) for places in pack(weights, count)]


def stage_units(context: StageContext, units: tuple[Unit, ...]) -> Iterator[pa.RecordBatch]:
    """Stage the rows of units again; yield rows of `STAGED`, or raise as `unique_rows` does."""
    assert context.unique is not None
    storage, order = Storage(context.io_properties), key_order(context.unique)
    for unit in units:
        rows = read_pieces(unit.pieces, context.schema.arrow, storage).to_batches()
        in_order = sort_batches(rows, order, context.schema)
        kept = unique_rows(in_order, context.unique)
        yield describe(context, [(unit.part, batch) for batch in kept if batch.num_rows])
