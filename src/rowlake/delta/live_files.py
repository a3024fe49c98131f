"""The live files of a version with their statistics, batch by batch.

Comes in: a state whose files may have statistics in a checkpoint, as texts or as columns. Goes out:
`FileBatch`es in the order of the state's files; each checkpoint file is read once, and no more than
a batch of statistics is in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.delta.checkpoints import STATS_ROWS, read_all_stats
from rowlake.delta.json_columns import literals, nested_objects, objects
from rowlake.delta.statistics import NULLS, typed_bounds
from rowlake.delta.stats_json import ROWS, SIDES
from rowlake.delta.stats_writer import TIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rowlake.delta.schema import TableColumns
    from rowlake.delta.state import LogState

    Path = tuple[str, ...]


@dataclass(frozen=True)
class FileBatch:
    """Some live files (`FILES`), and their statistics as texts, as columns, or both."""

    files: pa.Table
    texts: pa.Array | None
    parsed: pa.StructArray | None = None

    def stats(self, columns: TableColumns) -> pa.Array:
        """Return the statistics as texts."""
        if self.texts is not None:
            return self.texts
        if self.parsed is None:
            return pa.nulls(self.files.num_rows, pa.string())
        kinds = columns.schema.by_id
        return texts_of(
            self.parsed, {path: kinds[one].type for one, path in columns.physical.items()}
        )


def file_batches(state: LogState, files: pa.Table | None = None) -> Iterator[FileBatch]:
    """Yield the live files of a state, or some of them in their order, with statistics."""
    chosen = state.files if files is None else files
    sources = np.asarray(chosen["source"].fill_null(-1))
    edges = np.flatnonzero(np.diff(sources)) + 1
    for start, end in zip([0, *edges], [*edges, len(sources)], strict=True):
        run = chosen.slice(start, end - start)
        if not run.num_rows:
            continue
        if sources[start] < 0 or state.checkpoint is None:
            yield from _of_commits(run)
        else:
            yield from _of_checkpoint(run, state.checkpoint.sources[sources[start]], state)


def with_stats(files: pa.Table, state: LogState, columns: TableColumns) -> pa.Table:
    """Return live files with the statistics that a checkpoint has of them as texts."""
    index = files.schema.get_field_index("stats")
    parts = [files.schema.empty_table()]
    for batch in file_batches(state, files):
        stats = batch.stats(columns)
        parts.append(batch.files.set_column(index, files.schema.field(index), stats))
    return pa.concat_tables(parts)


def _of_commits(run: pa.Table) -> Iterator[FileBatch]:
    for start in range(0, run.num_rows, STATS_ROWS):
        some = run.slice(start, STATS_ROWS)
        yield FileBatch(some, some["stats"].combine_chunks())


def _of_checkpoint(run: pa.Table, location: str, state: LogState) -> Iterator[FileBatch]:
    rows = np.asarray(run["row"])
    first = 0
    for texts, parsed in read_all_stats(location, state.storage):
        size = len(next(one for one in (texts, parsed, ()) if one is not None))
        low, high = np.searchsorted(rows, (first, first + size))
        if high > low:
            places = pa.array(rows[low:high] - first)
            whole = high - low == size
            yield FileBatch(
                run.slice(low, high - low),
                texts if texts is None or whole else texts.take(places),
                parsed if parsed is None or whole else parsed.take(places),
            )
        first += size


def texts_of(parsed: pa.StructArray, kinds: Mapping[Path, pa.DataType]) -> pa.Array:
    """Return statistics that are columns as texts; null where there are none.

    `kinds` are the types of columns by physical path: those of checkpoints may be older ones.
    """
    size, fields = len(parsed), {}
    names = {one.name for one in parsed.type}
    if ROWS in names:
        fields[ROWS] = literals(pc.struct_field(parsed, ROWS))
    for side in SIDES:
        if side in names:
            typed = {} if side == NULLS else kinds
            leaves = _leaves(pc.struct_field(parsed, side), ())
            some = {path: _literals(one, typed.get(path)) for path, one in leaves}
            fields[side] = nested_objects(some, size)
    if TIGHT in names:
        fields[TIGHT] = literals(pc.struct_field(parsed, TIGHT))
    texts = objects(fields, size)
    return pc.if_else(parsed.is_valid(), texts, None)


def _leaves(struct: pa.StructArray, above: Path) -> Iterator[tuple[Path, pa.Array]]:
    for index, field in enumerate(struct.type):
        path = (*above, field.name)
        values = pc.struct_field(struct, index)
        if pa.types.is_struct(field.type):
            yield from _leaves(values, path)
        else:
            yield path, values


def _literals(values: pa.Array, kind: pa.DataType | None) -> pa.Array:
    typed = values if kind is None else typed_bounds(values, kind)
    return literals(values if typed is None else typed)
