"""Statistics of adds -> the maps by field id that planning prunes by.

Comes in: adds (`FILES`) and field ids. Goes out: row counts, and the columns of `files_schema` with
counts and bounds. Only what is asked for is read, of checkpoints too, where statistics are columns
(`stats_parsed`) or JSON texts. Invariant: a bound holds for every row: times are cut to
milliseconds by their writers, so that upper bounds get one more; decimals that some writers round
have none. Statistics of a file with a deletion vector speak of all its rows, which keeps this true.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rowlake.delta.checkpoints import PARSED, TEXTS, read_stats, stats_columns
from rowlake.delta.partitions import times_of
from rowlake.delta.stats_json import ROWS, SIDES, Leaf, Leaves, read_leaves
from rowlake.model.files import BOUNDS, COUNTS
from rowlake.model.values import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rowlake.delta.schema import TableColumns
    from rowlake.delta.state import LogState

    Numbers = np.ndarray[Any, Any]

MIN, MAX, NULLS = SIDES
_EXACT_DIGITS = 15  # of a double, as which some writers keep decimals
_MILLISECOND = np.timedelta64(1, "ms")


@dataclass(frozen=True)
class Statistics:
    """The statistics of some adds; `ids` are the fields of which more than row counts is wanted."""

    files: pa.Table
    state: LogState
    columns: TableColumns
    ids: tuple[int, ...] = ()

    @property
    def record_counts(self) -> pa.Array:
        """The rows of each file, deleted ones included; null where nobody counted them."""
        rows = self._leaves.rows
        return pc.if_else(pc.greater_equal(rows, 0), rows, None)

    def maps(self) -> dict[str, pa.Array]:
        """Return the columns of `files_schema` that have statistics by field id."""
        rows, known = self._leaves.rows, self._leaves.sides
        nulls = {one: known[NULLS][path] for one, path in self._paths.items()}
        values = {one: pc.if_else(pc.is_valid(count), rows, None) for one, count in nulls.items()}
        return {
            "value_counts": _maps(values, len(rows), COUNTS),
            "null_value_counts": _maps(nulls, len(rows), COUNTS),
            "lower_bounds": _maps(self._bounds(MIN), len(rows), BOUNDS),
            "upper_bounds": _maps(self._bounds(MAX), len(rows), BOUNDS),
        }

    def _bounds(self, side: str) -> dict[int, pa.Array]:
        found = {}
        for number, path in self._paths.items():
            values = self._leaves.sides[side].get(path)
            kind = self.columns.schema.by_id[number].type
            typed = None if values is None else typed_bounds(values, kind)
            if typed is not None:
                later = side == MAX and pt.is_timestamp(kind)
                found[number] = encode(pc.add(typed, _MILLISECOND) if later else typed)
        return found

    @cached_property
    def _paths(self) -> dict[int, tuple[str, ...]]:
        """The physical paths of the fields that statistics may speak of."""
        schema, physical = self.columns.schema, self.columns.physical
        return {
            one: physical[one]
            for one in self.ids
            if one in physical and not pt.is_nested(schema.by_id[one].type)
        }

    @cached_property
    def _wanted(self) -> list[Leaf]:
        kinds = {one: self.columns.schema.by_id[one].type for one in self._paths}
        return [Leaf(path, json_type(kinds[one])) for one, path in self._paths.items()]

    @cached_property
    def _leaves(self) -> Leaves:
        """The statistics of all files, in their order."""
        sources = np.asarray(_one(self.files["source"]).fill_null(-1))
        parts, places = [], []
        for source in np.unique(sources).tolist():
            rows = np.flatnonzero(sources == source)
            places.append(rows)
            parts.append(self._of_source(source, rows))
        order = np.argsort(np.concatenate([np.zeros(0, np.int64), *places]), kind="stable")
        return _reordered(_concatenated(parts, self._wanted), order)

    def _of_source(self, source: int, places: Numbers) -> Leaves:
        """Return the statistics of files whose adds are in one file of the log."""
        checkpoint = self.state.checkpoint
        if source < 0 or checkpoint is None:
            texts = self.files["stats"]
            whole = len(places) == len(texts)
            return read_leaves(_one(texts if whole else texts.take(places)), self._wanted)
        rows = np.asarray(_one(self.files["row"]).fill_null(-1))[places]
        return self._of_checkpoint(checkpoint.sources[source], rows)

    def _of_checkpoint(self, location: str, rows: Numbers) -> Leaves:
        """Return the statistics of rows of a checkpoint file: its columns first, then texts."""
        storage, known = self.state.storage, stats_columns(location, self.state.storage)
        found = None
        if PARSED in known:
            paths = [ROWS, *(".".join((s, *one.path)) for one in self._wanted for s in SIDES)]
            batches = read_stats(location, storage, PARSED, paths)
            found = self._parts(rows, batches, from_structs)
        if TEXTS in known and (found is None or found.rows.null_count):
            texts = self._parts(rows, read_stats(location, storage, TEXTS), read_leaves)
            found = texts if found is None or texts is None else _coalesced(found, texts)
        return found or read_leaves(pa.nulls(len(rows), pa.string()), self._wanted)

    def _parts(
        self,
        rows: Numbers,
        batches: Iterator[pa.Array | None],
        read: Callable[[pa.Array, Sequence[Leaf]], Leaves],
    ) -> Leaves | None:
        """Return the statistics of sorted rows; None where no batch has any."""
        parts, first = [], 0
        for batch in batches:
            if batch is None:
                return None
            low, high = np.searchsorted(rows, (first, first + len(batch)))
            if high - low == len(batch):
                parts.append(read(batch, self._wanted))
            elif high > low:
                parts.append(read(batch.take(pa.array(rows[low:high] - first)), self._wanted))
            first += len(batch)
        return _concatenated(parts, self._wanted)


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def all_ids(columns: TableColumns) -> tuple[int, ...]:
    """Return the fields that statistics may speak of."""
    return tuple(columns.physical)


def json_type(kind: pa.DataType) -> pa.DataType | None:
    """Return how JSON has the bounds of a type; None where they are not used."""
    if pt.is_integer(kind):
        return pa.int64()
    if pt.is_floating(kind):
        return pa.float64()
    if pt.is_decimal(kind):
        return kind if kind.precision <= _EXACT_DIGITS else None
    if pt.is_string(kind) or pt.is_date(kind) or pt.is_timestamp(kind):
        return pa.string()
    return kind if pt.is_boolean(kind) else None


def typed_bounds(values: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Return bounds as a column's type; None where they are not of it."""
    try:
        if pt.is_string(values.type) and pt.is_timestamp(kind):
            return times_of(values, kind)
        if pt.is_timestamp(values.type) and pt.is_timestamp(kind):
            micros = values.cast(pa.timestamp("us", values.type.tz), safe=False)
            return micros.cast(pa.int64()).cast(kind)
        typed = values.cast(kind)
    except pa.ArrowException:
        return None
    if pt.is_floating(kind):
        typed = pc.if_else(pc.is_nan(typed), None, typed)
    return typed


def from_structs(stats: pa.StructArray, wanted: Sequence[Leaf]) -> Leaves:
    """Return statistics that are columns of a checkpoint."""
    counts = _field(stats, (ROWS,))
    rows = pa.nulls(len(stats), pa.int64()) if counts is None else counts.cast(pa.int64())
    found = Leaves(rows, {side: {} for side in SIDES})
    for leaf in wanted:
        for side in SIDES:
            values = _field(stats, (side, *leaf.path))
            if values is not None and (side == NULLS or leaf.json_type is not None):
                found.sides[side][leaf.path] = values
    return found


def _field(struct: pa.StructArray, path: Sequence[str]) -> pa.Array | None:
    kind = struct.type
    for name in path:
        if not pt.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(name).type
    return pc.struct_field(struct, list(path))


def _coalesced(first: Leaves, then: Leaves) -> Leaves:
    found = Leaves(pc.coalesce(first.rows, then.rows), {})
    for side in SIDES:
        paths = {*first.sides[side], *then.sides.get(side, {})}
        found.sides[side] = {
            path: _either(first.sides[side].get(path), then.sides.get(side, {}).get(path))
            for path in paths
        }
    return found


def _either(first: pa.Array | None, then: pa.Array | None) -> pa.Array:
    if first is None or then is None:
        return then if first is None else first
    if first.type == then.type:
        return pc.coalesce(first, then)
    typed = typed_bounds(then, first.type)
    return first if typed is None else pc.coalesce(first, typed)


def _concatenated(parts: Sequence[Leaves], wanted: Sequence[Leaf]) -> Leaves:
    """Return the statistics of several parts as one; null counts are there for every leaf."""
    rows = pa.concat_arrays([pa.array([], pa.int64()), *(part.rows for part in parts)])
    found = Leaves(rows, {side: {} for side in SIDES})
    for leaf in wanted:
        for side in SIDES:
            arrays = [(part.sides.get(side, {}).get(leaf.path), len(part.rows)) for part in parts]
            joined = _joined(arrays, leaf, side)
            if joined is not None:
                found.sides[side][leaf.path] = joined
    return found


def _reordered(found: Leaves, order: Numbers) -> Leaves:
    if (order == np.arange(len(order))).all():
        return found
    places = pa.array(order)
    sides = {
        side: {path: one.take(places) for path, one in some.items()}
        for side, some in found.sides.items()
    }
    return Leaves(found.rows.take(places), sides)


def _joined(arrays: list[tuple[pa.Array | None, int]], leaf: Leaf, side: str) -> pa.Array | None:
    kinds = {one.type for one, _ in arrays if one is not None}
    if side != NULLS and leaf.json_type is None:
        return None
    kind = kinds.pop() if len(kinds) == 1 else (pa.int64() if side == NULLS else leaf.json_type)
    parts = [pa.array([], kind)]
    for one, size in arrays:
        parts.append(pa.nulls(size, kind) if one is None else _cast(one, kind))
    return pa.concat_arrays(parts)


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if values.type == kind:
        return values
    try:
        return values.cast(kind)
    except pa.ArrowException:
        return pa.nulls(len(values), kind)


def _maps(values: dict[int, pa.Array], size: int, kind: pa.MapType) -> pa.Array:
    """Return one map per file, of the values that are not null."""
    if not values or not size:
        return pa.nulls(size, kind)
    width = len(values)
    row_major = np.arange(size * width).reshape(width, size).T.ravel()
    flat = pa.concat_arrays([one.cast(kind.item_type) for one in values.values()])
    items = flat.take(pa.array(row_major))
    held = np.asarray(items.is_valid())
    keys = np.tile(np.array(list(values), np.int32), size)[held]
    offsets = np.zeros(size + 1, np.int32)
    np.cumsum(held.reshape(size, width).sum(axis=1), out=offsets[1:])
    found = pa.MapArray.from_arrays(
        pa.array(offsets), pa.array(keys, pa.int32()), items.filter(pa.array(held))
    )
    return found.cast(kind)
