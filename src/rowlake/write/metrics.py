"""The metrics of one written file: sizes, counts and bounds by field id.

Comes in: what the file's footer says, and what was counted while writing (NaN; bounds of values
too long for footers). Goes out: the metric columns of `WRITTEN_FILES` as lists of pairs.
Invariants, as Iceberg Java keeps them: leaves below lists and maps have sizes only; NaN is
counted, never a bound; a zero is -0.0 as a lower and 0.0 as an upper bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import SchemaMismatchError
from rowlake.model.schema import type_name
from rowlake.write.bounds import cut_lower, cut_upper, encode_raw
from rowlake.write.leaves import Leaf, leaf_values
from rowlake.write.metrics_modes import FULL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rowlake.write.metrics_modes import MetricsMode

# Parquet writers drop the footer's bounds of values longer than this.
LONGEST_FOOTER_VALUE = 4096


@dataclass
class Metrics:
    """The metrics of one file; each is a list of (field id, value)."""

    column_sizes: list[tuple[int, int]] = field(default_factory=list)
    value_counts: list[tuple[int, int]] = field(default_factory=list)
    null_value_counts: list[tuple[int, int]] = field(default_factory=list)
    nan_value_counts: list[tuple[int, int]] = field(default_factory=list)
    lower_bounds: list[tuple[int, bytes]] = field(default_factory=list)
    upper_bounds: list[tuple[int, bytes]] = field(default_factory=list)

    def add_bounds(self, leaf: Leaf, lowest: bytes, highest: bytes, mode: MetricsMode) -> None:
        """Add the bounds of a leaf, from its exact smallest and largest values.

        Raises SchemaMismatchError for text that is not valid UTF-8, which Arrow does not check.
        """
        arrow_type = _storage(leaf.field.type)
        try:
            lower = cut_lower(lowest, arrow_type, mode)
            upper = cut_upper(highest, arrow_type, mode)
        except UnicodeDecodeError as error:
            raise SchemaMismatchError(
                f"Column {leaf.name} holds text that is not valid UTF-8 ({error.object[:16]!r}). "
                "Give it as binary, or decode it first; in a table, restore the data file.",
                column=leaf.name,
            ) from error
        self.lower_bounds.append((leaf.field_id, lower))
        if upper is not None:
            self.upper_bounds.append((leaf.field_id, upper))


@dataclass
class Tally:
    """What footers do not say of one leaf, gathered while its file is written."""

    nans: int = 0
    lowest: bytes | None = None
    highest: bytes | None = None


class Tallies:
    """Counts NaN, and keeps the bounds of long values, of the leaves that need it."""

    def __init__(self, leaves: Iterable[Leaf], modes: Mapping[int, MetricsMode]) -> None:
        counted = [
            leaf
            for leaf in leaves
            if not leaf.is_repeated and modes.get(leaf.field_id, FULL).counts
        ]
        self._floats = [leaf for leaf in counted if pa.types.is_floating(leaf.field.type)]
        self._long = [
            leaf
            for leaf in counted
            if modes.get(leaf.field_id, FULL).bounds and _may_be_long(leaf.field)
        ]
        self.by_id = {leaf.field_id: Tally() for leaf in (*self._floats, *self._long)}

    def add(self, batches: list[list[pa.Array]]) -> None:
        """Count what is in the batches (each a list of columns) of one row group."""
        for leaf in self._floats:
            nans = (pc.sum(pc.is_nan(leaf_values(leaf, batch))).as_py() for batch in batches)
            self.by_id[leaf.field_id].nans += sum(found or 0 for found in nans)
        for leaf in self._long:
            parts = [leaf_values(leaf, batch) for batch in batches]
            # One long value costs the whole row group its footer bounds: take them of all parts.
            if any(_longest(part) > LONGEST_FOOTER_VALUE for part in parts):
                for part in parts:
                    self._add_bounds(self.by_id[leaf.field_id], part)

    def _add_bounds(self, tally: Tally, values: pa.Array) -> None:
        found = pc.min_max(values.cast(pa.binary()))
        lowest, highest = found["min"].as_py(), found["max"].as_py()
        if lowest is None:
            return
        tally.lowest = lowest if tally.lowest is None else min(tally.lowest, lowest)
        tally.highest = highest if tally.highest is None else max(tally.highest, highest)


def _longest(values: pa.Array) -> int:
    return pc.max(pc.binary_length(values)).as_py() or 0


def _may_be_long(column: pa.Field) -> bool:
    kind = column.type
    return pa.types.is_string(kind) or (pa.types.is_binary(kind) and not _is_shape(column))


def _is_shape(column: pa.Field) -> bool:
    """Return whether a leaf is geometry or geography: no bounds, as in Java."""
    return (type_name(column) or "").startswith("geo")


def _storage(arrow_type: pa.DataType) -> pa.DataType:
    is_extension = isinstance(arrow_type, pa.BaseExtensionType)
    return arrow_type.storage_type if is_extension else arrow_type


def parquet_metrics(
    footer: Any, leaves: list[Leaf], modes: Mapping[int, MetricsMode], tallies: Mapping[int, Tally]
) -> Metrics:
    """Return the metrics of a Parquet file; `footer` is its pyarrow FileMetaData."""
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    metrics = Metrics()
    for place, leaf in enumerate(leaves):
        mode = modes.get(leaf.field_id, FULL)
        if not mode.counts:
            continue
        chunks = [group.column(place) for group in groups]
        size = sum(chunk.total_compressed_size for chunk in chunks)
        metrics.column_sizes.append((leaf.field_id, size))
        if not leaf.is_repeated:
            _add_parquet_leaf(metrics, leaf, chunks, mode, tallies.get(leaf.field_id, Tally()))
    return metrics


def _add_parquet_leaf(
    metrics: Metrics, leaf: Leaf, chunks: list[Any], mode: MetricsMode, tally: Tally
) -> None:
    statistics = [chunk.statistics for chunk in chunks]
    if any(found is None or not found.has_null_count for found in statistics):
        return
    nulls = sum(found.null_count for found in statistics)
    values = sum(chunk.num_values for chunk in chunks)
    metrics.value_counts.append((leaf.field_id, values))
    metrics.null_value_counts.append((leaf.field_id, nulls))
    if pa.types.is_floating(leaf.field.type):
        metrics.nan_value_counts.append((leaf.field_id, tally.nans))
    if not mode.bounds or _is_shape(leaf.field):
        return
    bounded = [found for found in statistics if found.has_min_max]
    arrow_type = _storage(leaf.field.type)
    lows = [found.min_raw for found in bounded]
    highs = [found.max_raw for found in bounded]
    if tally.lowest is not None and tally.highest is not None:
        lows.append(tally.lowest)
        highs.append(tally.highest)
    if not lows:
        return
    lowest, highest = _smallest(lows, arrow_type), _largest(highs, arrow_type)
    metrics.add_bounds(leaf, encode_raw(lowest, arrow_type), encode_raw(highest, arrow_type), mode)


def _smallest(raw: list[Any], arrow_type: pa.DataType) -> Any:
    return min(raw, key=_order_of(arrow_type))


def _largest(raw: list[Any], arrow_type: pa.DataType) -> Any:
    return max(raw, key=_order_of(arrow_type))


def _order_of(arrow_type: pa.DataType) -> Any:
    """Return the sort key of physical values: wide decimals are big-endian two's complement."""
    if pa.types.is_decimal(arrow_type) and arrow_type.precision > 18:
        return lambda raw: int.from_bytes(raw, "big", signed=True)
    return lambda raw: raw
