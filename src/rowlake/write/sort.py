"""Rows sorted by a table's sort order, within bounded memory.

Comes in: batches in the table's schema. Goes out: the same rows in sorted runs; a run is what
fits the context's buffer, and every file is written from one run, so every file is sorted.
Order is the spec's: NaN above all numbers, nulls where the sort field says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.partition import SortField
from rowlake.model.transform import apply_transform
from rowlake.write.partitions import column_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rowlake.model.schema import Schema
    from rowlake.write.context import WriteContext

SLICE_ROWS = 256 * 1024


def sorted_runs(
    batches: Iterable[pa.RecordBatch], context: WriteContext
) -> Iterator[list[pa.RecordBatch]]:
    """Yield sorted runs, clustered by partition first so that one file is open at a time."""
    keys = _clustering(context) + context.sort
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= context.buffer_size_in_bytes:
            yield sort_batches(waiting, keys, context.schema)
            waiting, size = [], 0
    if waiting:
        yield sort_batches(waiting, keys, context.schema)


def _clustering(context: WriteContext) -> tuple[SortField, ...]:
    return tuple(
        SortField(field.source_id, field.transform)
        for field in context.spec.fields
        if field.transform != "void"
    )


def sort_batches(
    batches: list[pa.RecordBatch], keys: tuple[SortField, ...], schema: Schema
) -> list[pa.RecordBatch]:
    """Return all rows sorted by the keys; equal rows keep their order."""
    joined = pa.concat_batches(batches)
    columns, directions = _sort_columns(joined, keys, schema)
    if _are_in_order(columns, directions):
        return [joined.slice(start, SLICE_ROWS) for start in range(0, len(joined), SLICE_ROWS)]
    order = _order(joined, columns, directions)
    return [
        joined.take(order.slice(start, SLICE_ROWS)) for start in range(0, len(joined), SLICE_ROWS)
    ]


def sort_indices(batch: pa.RecordBatch, keys: tuple[SortField, ...], schema: Schema) -> pa.Array:
    """Return the order of the rows."""
    return _order(batch, *_sort_columns(batch, keys, schema))


def _order(
    batch: pa.RecordBatch, columns: list[pa.Array], directions: list[tuple[str, str]]
) -> pa.Array:
    if not columns:
        return pa.array(np.arange(len(batch)))
    table = pa.Table.from_arrays(columns, names=[str(place) for place in range(len(columns))])
    return pc.sort_indices(table, sort_keys=directions)


def _are_in_order(columns: list[pa.Array], directions: list[tuple[str, str]]) -> bool:
    """Return whether rows are in order as they are, as rows read from a sorted file are.

    Columns with nulls, floating-point numbers and rarer types are left to the sort itself.
    """
    equal = None
    for column, (_, direction) in zip(columns, directions, strict=True):
        if column.null_count or not _is_plain(column.type):
            return False
        before, after = column.slice(0, max(0, len(column) - 1)), column.slice(1)
        wrong = (pc.greater if direction == "ascending" else pc.less)(before, after)
        if pc.any(wrong if equal is None else pc.and_(wrong, equal)).as_py():
            return False
        same = pc.equal(before, after)
        equal = same if equal is None else pc.and_(equal, same)
    return True


def _is_plain(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_temporal(kind) or types.is_string(kind))


def _sort_columns(
    batch: pa.RecordBatch, keys: tuple[SortField, ...], schema: Schema
) -> tuple[list[pa.Array], list[tuple[str, str]]]:
    """Return the columns to sort by and their directions."""
    columns: list[pa.Array] = []
    directions: list[tuple[str, str]] = []
    for key in keys:
        values = apply_transform(key.transform, column_at(batch, schema, key.source_id))
        ranks = _ranks(values, key)
        if ranks is not None:
            directions.append((str(len(columns)), "ascending"))
            columns.append(ranks)
        directions.append((str(len(columns)), "ascending" if key.ascending else "descending"))
        columns.append(values)
    return columns, directions


def _ranks(values: pa.Array, key: SortField) -> pa.Array | None:
    """Return a leading key that puts nulls and NaN where they belong; None where there are none."""
    is_float = pa.types.is_floating(values.type)
    has_nan = is_float and pc.any(pc.is_nan(values)).as_py()
    if not values.null_count and not has_nan:
        return None
    ranks = np.full(len(values), 2, dtype=np.int8)
    if has_nan:
        nans = np.asarray(pc.fill_null(pc.is_nan(values), False))
        ranks[nans] = 3 if key.ascending else 1
    ranks[np.asarray(values.is_null())] = 0 if key.nulls_first else 4
    return pa.array(ranks)
