"""The source rows of one task: loaded by part, indexed, and marked as they are matched."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from rowlake.rowlevel.index import KeyIndex, Pairs
from rowlake.rowlevel.staged import read_pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rowlake.rowlevel.task import ChangeTask
    from rowlake.storage.files import Storage

    Numbers = NDArray[np.int64]
    Flags = NDArray[np.bool_]


class Part:
    """The rows of one part, with which of them were matched."""

    def __init__(self, task: ChangeTask, number: int, storage: Storage) -> None:
        self.number = number
        pieces = [piece for piece in task.pieces if piece.part == number]
        assert task.staged_schema is not None
        self.rows = read_pieces(pieces, task.staged_schema, storage)
        self._matching = task.matching
        self.matched: Flags = np.zeros(self.rows.num_rows, np.bool_)
        before = task.matched.get(number)
        if before is not None:
            self.matched[BitMap.deserialize(before).to_array()] = True

    @cached_property
    def _eligible(self) -> Numbers:
        name = self._matching.eligible
        if name is None:
            return np.arange(self.rows.num_rows, dtype=np.int64)
        return np.flatnonzero(flags(self.rows, name))

    @cached_property
    def _index(self) -> KeyIndex:
        names = [staged for _, staged in self._matching.keys]
        able = self._eligible
        rows = self.rows if len(able) == self.rows.num_rows else self.rows.take(pa.array(able))
        return KeyIndex([rows[name] for name in names], self._matching.null_safe, able)

    @cached_property
    def _by_location(self) -> dict[str, Numbers]:
        assert self._matching.location is not None
        named = self.rows[self._matching.location].combine_chunks().dictionary_encode()
        if isinstance(named, pa.ChunkedArray):
            named = named.unify_dictionaries().combine_chunks()
        codes = np.asarray(named.indices)
        order = np.argsort(codes, kind="stable")
        edges = np.searchsorted(codes[order], np.arange(len(named.dictionary) + 1))
        return {
            name: order[edges[n] : edges[n + 1]]
            for n, name in enumerate(named.dictionary.to_pylist())
        }

    def probe(self, keys: list[pa.Array]) -> Pairs:
        """Return the matches of target rows by key; their source rows count as matched."""
        found = self._index.probe(keys)
        self.matched[found.source] = True
        return found

    def at(self, location: str) -> Pairs:
        """Return the source rows that name rows of a target file: positions, rows; in order."""
        rows = self._by_location.get(location, np.empty(0, np.int64))
        assert self._matching.position is not None
        column = self.rows[self._matching.position].take(pa.array(rows))
        positions = np.asarray(column.combine_chunks())
        order = np.argsort(positions, kind="stable")
        self.matched[rows] = True
        return Pairs(positions[order], rows[order])

    def matched_bitmap(self) -> bytes:
        """Return which rows were matched."""
        return bytes(BitMap(np.flatnonzero(self.matched).astype(np.uint32)).serialize())


def flags(rows: pa.Table, name: str) -> Flags:
    """Return where a boolean column is TRUE."""
    return np.asarray(rows[name].combine_chunks().fill_null(False)).astype(np.bool_)


class Source:
    """All parts that a task reads, each loaded at its first use; the last few stay."""

    def __init__(self, task: ChangeTask, storage: Storage) -> None:
        self._task, self._storage = task, storage
        self._parts: dict[int, Part] = {}

    def part(self, number: int) -> Part:
        """Return a part."""
        if number not in self._parts:
            self._parts[number] = Part(self._task, number, self._storage)
        return self._parts[number]

    @property
    def parts(self) -> list[Part]:
        """The parts read so far."""
        return list(self._parts.values())
