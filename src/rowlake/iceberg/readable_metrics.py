"""Metrics of files as people read them: a struct of counts and typed bounds per column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.schema import children, field_id
from rowlake.model.values import decode

if TYPE_CHECKING:
    from rowlake.model.schema import Schema

_COUNTS = ("column_size", "value_count", "null_value_count", "nan_value_count")
_MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")


def readable_metrics(entries: pa.Table, schema: Schema) -> pa.Array:
    """Return one struct per file: for each primitive column its counts and bounds."""
    leaves = {
        ".".join(path): field
        for path, field in schema.walk()
        if not children(field.type) and not pa.types.is_null(field.type)
    }
    columns = {name: _of_column(entries, field) for name, field in sorted(leaves.items())}
    if not columns:
        return pa.array([{}] * entries.num_rows, pa.struct([]))
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


def _of_column(entries: pa.Table, field: pa.Field) -> pa.StructArray:
    wanted = field_id(field)
    assert wanted is not None
    counts = [map_value(entries[name], wanted) for name in _MAPS]
    bounds = [
        decode(map_value(entries[name], wanted), field.type)
        for name in ("lower_bounds", "upper_bounds")
    ]
    return pa.StructArray.from_arrays(
        [*counts, *bounds], names=[*_COUNTS, "lower_bound", "upper_bound"]
    )


def map_value(maps: pa.ChunkedArray, key: int) -> pa.Array:
    """Return the value of one key from each map, null where a map lacks it."""
    combined = maps.combine_chunks()
    array = combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
    offsets = np.asarray(array.offsets)
    rows = np.repeat(np.arange(len(array)), np.diff(offsets))
    first, last = int(offsets[0]), int(offsets[-1])
    found = np.flatnonzero(np.asarray(array.keys.slice(first, last - first)) == key)
    indices = np.full(len(array), -1)
    indices[rows[found]] = found + first
    taken = pa.array(indices, pa.int64(), mask=indices < 0)
    return pc.take(array.items, taken)
