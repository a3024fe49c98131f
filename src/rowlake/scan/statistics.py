"""What a Parquet footer and its Bloom filters say of some row groups.

Comes in: a footer and the row groups in question. Goes out: the bounds of one column in all of
them as arrays of the table's type (a file's own type may be narrower), null where nothing is
known. NaN is no bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rowlake.scan.bloom import open_bloom_filter
from rowlake.scan.nested import converter
from rowlake.scan.physical import encoder
from rowlake.scan.shape import leaf_ranges, path_to

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from numpy.typing import NDArray

    from rowlake.model.predicate import Leaf
    from rowlake.scan.project import Columns
    from rowlake.scan.source import Unit

# More IN values than this are tested as one range, and not against Bloom filters.
MANY_VALUES = 200


@dataclass(frozen=True)
class Bounds:
    """One column's bounds per row group, null where unknown; `nulls` is -1 where unknown."""

    lower: pa.Array
    upper: pa.Array
    nulls: NDArray[np.int64]
    values: NDArray[np.int64]

    @property
    def only_nulls(self) -> NDArray[np.bool_]:
        """Where a row group has no value at all."""
        found: NDArray[np.bool_] = (self.nulls >= 0) & (self.nulls == self.values)
        return found


class RowGroupStatistics:
    """What a footer says of some row groups."""

    def __init__(
        self, metadata: pq.FileMetaData, stream: pa.NativeFile, units: list[Unit], columns: Columns
    ) -> None:
        self.units, self.columns = units, columns
        self._metadata, self._stream = metadata, stream
        self._fields = list(columns.file.arrow)

    def constant(self, leaf: Leaf) -> pa.Array | None:
        """Return a leaf's one value where the file does not have the column."""
        path = path_to(self.columns.targets, leaf.field_id or -1)
        if path is None:
            return None
        value = self.columns.constant_at(path[0])
        if value is None:
            return None
        array = pa.array([value.as_py()], value.type)
        return array if len(path) == 1 else pc.struct_field(array, list(path[1:]))

    def bounds(self, leaf: Leaf) -> Bounds | None:
        """Return a leaf's bounds, None where nothing is known."""
        found = self._place(leaf)
        if found is None:
            return None
        number, source, target = found
        chunks = [self._metadata.row_group(unit.index).column(number) for unit in self.units]
        try:
            convert = converter(_plain(source), target, {})
            lower, upper = (_limits(chunks, _plain(source).type, side) for side in ("min", "max"))
            if convert is not None:
                lower, upper = convert(lower), convert(upper)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            return None
        nulls = np.array([_null_count(chunk) for chunk in chunks], np.int64)
        values = np.array([chunk.num_values for chunk in chunks], np.int64)
        return Bounds(_known(lower), _known(upper), nulls, values)

    def may_hold(self, leaf: Leaf, still: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which row groups hold a value of an EQ or IN leaf, by Bloom filters."""
        found = self._place(leaf)
        if found is None or len(leaf.values) > MANY_VALUES or not still.any():
            return still
        number, source, target = found
        first = self._metadata.row_group(0).column(number)
        encode = encoder(_plain(source).type, target.type, first.physical_type)
        if encode is None:
            return still
        encoded = [encode(value) for value in leaf.values]
        kept = still.copy()
        for at in np.flatnonzero(still):
            chunk = self._metadata.row_group(self.units[at].index).column(number)
            bloom = open_bloom_filter(self._stream, chunk)
            if bloom is not None:
                kept[at] = any(one is not None and bloom.may_hold(one) for one in encoded)
        return kept

    def _place(self, leaf: Leaf) -> tuple[int, pa.Field, pa.Field] | None:
        """Return a leaf's column number, its field in the file and its field in the table."""
        wanted = leaf.field_id or -1
        source_path = path_to(self._fields, wanted)
        target_path = path_to(self.columns.targets, wanted)
        if source_path is None or target_path is None:
            return None
        numbers, source = _follow(self._fields, source_path)
        target = _follow(self.columns.targets, target_path)[1]
        return (numbers.start, source, target) if len(numbers) == 1 else None


def _plain(field: pa.Field) -> pa.Field:
    """Return the field with the type that statistics are in."""
    arrow_type = field.type
    if isinstance(arrow_type, pa.ExtensionType):
        arrow_type = arrow_type.storage_type
    if pt.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    return field.with_type(arrow_type)


def _limits(chunks: list[pq.ColumnChunkMetaData], source: pa.DataType, side: str) -> pa.Array:
    if not pt.is_timestamp(source):
        return pa.array([_limit(chunk, side) for chunk in chunks], source)
    raw = [_limit(chunk, f"{side}_raw") for chunk in chunks]
    return pa.array(raw, pa.int64()).view(source)


def _limit(chunk: pq.ColumnChunkMetaData, side: str) -> Any:
    statistics = chunk.statistics if chunk.is_stats_set else None
    if statistics is None or not statistics.has_min_max or chunk.physical_type == "INT96":
        return None
    return getattr(statistics, side)


def _null_count(chunk: pq.ColumnChunkMetaData) -> int:
    statistics = chunk.statistics if chunk.is_stats_set else None
    if statistics is None or not statistics.has_null_count:
        return -1
    count: int = statistics.null_count
    return count


def _known(limits: pa.Array) -> pa.Array:
    """Return the limits without NaN, which bounds nothing."""
    if not pt.is_floating(limits.type):
        return limits
    return pc.if_else(pc.is_nan(limits), None, limits)


def _follow(
    fields: list[pa.Field] | tuple[pa.Field, ...], path: tuple[int, ...]
) -> tuple[range, pa.Field]:
    field, numbers = list(leaf_ranges(fields))[path[0]]
    for index in path[1:]:
        below = [field.type.field(at) for at in range(field.type.num_fields)]
        field, numbers = list(leaf_ranges(below, numbers.start))[index]
    return numbers, field
