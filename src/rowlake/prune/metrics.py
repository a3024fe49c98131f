"""One column's metrics out of the maps that manifests keep by field id.

Comes in: a map column (`lower_bounds`, `null_value_counts`, …) of a table of files. Goes out: an
array with one value per file, null where the map is missing or has no such id. The work is done
on the maps' keys as one array, so its cost does not depend on Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def map_value(column: pa.Array | pa.ChunkedArray, field_id: int) -> pa.Array:
    """Return each map's value for this key, null where there is none."""
    if not isinstance(column, pa.ChunkedArray):
        return _map_value(column, field_id)
    if not column.num_chunks:
        return pa.nulls(0, column.type.item_type)
    return pa.concat_arrays([_map_value(chunk, field_id) for chunk in column.chunks])


def _map_value(maps: pa.MapArray, field_id: int) -> pa.Array:
    offsets = np.asarray(maps.offsets)
    first, last = int(offsets[0]), int(offsets[-1])
    keys = np.asarray(maps.keys[first:last])
    hits = np.flatnonzero(keys == field_id) + first
    if len(hits) == len(maps) and not maps.null_count and _one_each(offsets, hits):
        return maps.items.take(pa.array(hits))
    return maps.items.take(_places(maps, offsets, hits))


def _one_each(offsets: np.ndarray[Any, Any], hits: np.ndarray[Any, Any]) -> bool:
    return bool((hits >= offsets[:-1]).all() and (hits < offsets[1:]).all())


def _places(
    maps: pa.MapArray, offsets: np.ndarray[Any, Any], hits: np.ndarray[Any, Any]
) -> pa.Array:
    """Return the index of each map's hit among the items, null where it has none."""
    places = np.full(len(maps), -1, dtype=np.int64)
    places[np.searchsorted(offsets, hits, side="right") - 1] = hits
    missing = places < 0
    if maps.null_count:
        missing |= np.asarray(maps.is_null())
    return pa.array(places, mask=missing)


def list_value(lists: pa.ListArray, position: int) -> pa.Array:
    """Return each list's element at this position, null where the list is shorter or null."""
    offsets = np.asarray(lists.offsets).astype(np.int64)
    places = offsets[:-1] + position
    missing = places >= offsets[1:]
    if lists.null_count:
        missing = missing | np.asarray(lists.is_null())
    return lists.values.take(pa.array(places, mask=missing))
