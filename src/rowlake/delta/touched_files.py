"""Some live files of a head, with all that a log says of them: what a commit removes or re-adds."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rowlake.delta.live_files import with_stats
from rowlake.delta.statistics import Statistics
from rowlake.delta.vectors import vector_columns

if TYPE_CHECKING:
    from collections.abc import Collection

    from rowlake.delta.schema import TableColumns
    from rowlake.delta.state import LogState


class TouchedFiles:
    """The live files at some locations, or with some vectors, as a table of `FILES`."""

    def __init__(
        self,
        state: LogState,
        columns: TableColumns,
        places: Collection[str],
        vectors: Collection[tuple[str, int | None]] = (),
    ) -> None:
        self._state, self._columns = state, columns
        keys = _vector_keys(state.files, state.table) if vectors else {}
        wanted = {*places, *(keys[one] for one in vectors if one in keys)}
        self.files = _at(state.files, wanted)

    @cached_property
    def locations(self) -> set[str]:
        """Where they are."""
        return set(self.files["location"].to_pylist())

    def at(self, places: Collection[str]) -> pa.Table:
        """Return those at some locations."""
        return _at(self.files, places)

    @cached_property
    def vector_keys(self) -> dict[tuple[str, int | None], str]:
        """The keys of their vectors (`DeleteFile.key`), each with its data file."""
        return _vector_keys(self.files, self._state.table)

    def record_counts(self, files: pa.Table) -> pa.Array:
        """Return the rows of each file, deleted ones included; counted where nobody has."""
        if not files.num_rows:
            return pa.array([], pa.int64())
        known = Statistics(files, self._state, self._columns).record_counts
        if not known.null_count:
            return known
        counts = zip(known.to_pylist(), files["location"].to_pylist(), strict=True)
        found = [self._count(place) if one is None else one for one, place in counts]
        return pa.array(found, pa.int64())

    def _count(self, location: str) -> int:
        with self._state.storage.open_input(location) as stream:
            return int(pq.read_metadata(stream).num_rows)

    def live_rows(self, files: pa.Table) -> int:
        """Return how many rows of some files are not deleted."""
        if not files.num_rows:
            return 0
        every = pc.sum(self.record_counts(files)).as_py() or 0
        return int(every - (pc.sum(files["vector_cardinality"]).as_py() or 0))

    def with_stats(self, files: pa.Table) -> pa.Table:
        """Return some of the files with their statistics as texts."""
        return with_stats(files, self._state, self._columns)


def _at(files: pa.Table, places: Collection[str]) -> pa.Table:
    if not places:
        return files.slice(0, 0)
    return files.filter(pc.is_in(files["location"], pa.array(sorted(places), pa.string())))


def _vector_keys(files: pa.Table, table: str) -> dict[tuple[str, int | None], str]:
    files = files.filter(pc.is_valid(files["storage_type"]))
    if not files.num_rows:
        return {}
    columns = vector_columns(files, table)
    keys = zip(columns["location"].to_pylist(), columns["content_offset"].to_pylist(), strict=True)
    return dict(zip(keys, files["location"].to_pylist(), strict=True))
