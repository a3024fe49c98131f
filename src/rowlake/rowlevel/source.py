"""The source rows of one task: loaded by part and indexed; notes which were matched."""

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


_LOADED_BYTES = 256 * 1024 * 1024


class Part:
    """The rows of one part, with which of them were matched."""

    def __init__(self, task: ChangeTask, number: int, matched: Flags, storage: Storage) -> None:
        self.number = number
        pieces = [piece for piece in task.pieces if piece.part == number]
        assert task.staged_schema is not None
        self.rows = read_pieces(pieces, task.staged_schema, storage)
        self._matching = task.matching
        self.matched = matched

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


def flags(rows: pa.Table, name: str) -> Flags:
    """Return where a boolean column is TRUE."""
    return np.asarray(rows[name].combine_chunks().fill_null(False)).astype(np.bool_)


class SourceRows:
    """All parts that a task reads, each loaded at its first use; the last few stay loaded."""

    def __init__(self, task: ChangeTask, storage: Storage) -> None:
        self._task, self._storage = task, storage
        self._parts: dict[int, Part] = {}
        self._matched: dict[int, Flags] = {}

    def part(self, number: int) -> Part:
        """Return a part; which of its rows were matched is known also after it was let go."""
        found = self._parts.pop(number, None)
        if found is None:
            self._let_go()
            found = Part(self._task, number, self._flags(number), self._storage)
        self._parts[number] = found
        return found

    def _let_go(self) -> None:
        """Forget the parts used longest ago, until there is room for another."""
        while sum(part.rows.nbytes for part in self._parts.values()) > _LOADED_BYTES:
            self._parts.pop(next(iter(self._parts)))

    def _flags(self, number: int) -> Flags:
        if number not in self._matched:
            rows = sum(piece.rows for piece in self._task.pieces if piece.part == number)
            flags = np.zeros(rows, np.bool_)
            before = self._task.matched.get(number)
            if before is not None:
                flags[BitMap.deserialize(before).to_array()] = True
            self._matched[number] = flags
        return self._matched[number]

    @property
    def has_matches(self) -> bool:
        """True once any source row was matched."""
        return any(flags.any() for flags in self._matched.values())

    def matched_bitmaps(self) -> dict[int, bytes]:
        """Return which rows were matched of the parts read so far."""
        return {
            number: bytes(BitMap(np.flatnonzero(flags).astype(np.uint32)).serialize())
            for number, flags in self._matched.items()
        }
