"""Columns as pyarrow's Parquet writer has to get them.

A required field of an optional struct has no value where the struct is null. pyarrow's writer
refuses an array of such a field that is null there; so it gets one that is nowhere null. What
stands below a null struct is not written.
"""

from __future__ import annotations

import pyarrow as pa

from rowlake.model.schema import children


def writable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with the same values whose required fields are nowhere null."""
    columns = [
        _filled(column) if _has_required_below(field.type) else column
        for column, field in zip(batch.columns, batch.schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _has_required_below(kind: pa.DataType) -> bool:
    below = children(kind)
    is_struct = pa.types.is_struct(kind)
    required = is_struct and any(not child.nullable for child in below)
    return required or any(_has_required_below(child.type) for child in below)


def _filled(values: pa.Array) -> pa.Array:
    kind = values.type
    if not _has_required_below(kind):
        return values
    if pa.types.is_struct(kind):
        fields = list(kind)
        parts = [
            _filled(part) if child.nullable else _without_nulls(_filled(part))
            for child, part in zip(fields, map(values.field, range(len(fields))), strict=True)
        ]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=_nulls(values))
    values = pa.concat_arrays([values])  # a slice would keep offsets into all values
    if pa.types.is_map(kind):
        items = _filled(values.items)
        return pa.MapArray.from_arrays(
            values.offsets, values.keys, items, type=kind, mask=_nulls(values)
        )
    held = _filled(values.values)
    return pa.ListArray.from_arrays(values.offsets, held, type=kind, mask=_nulls(values))


def _without_nulls(values: pa.Array) -> pa.Array:
    """Return the same array with no null in it; what stands in place of nulls does not matter."""
    if not values.null_count:
        return values
    kind = values.type
    if pa.types.is_struct(kind):
        parts = [values.field(at) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind))
    values = pa.concat_arrays([values])
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(values.offsets, values.keys, values.items, type=kind)
    if pa.types.is_nested(kind):
        return pa.ListArray.from_arrays(values.offsets, values.values, type=kind)
    return pa.Array.from_buffers(kind, len(values), [None, *values.buffers()[1:]])


def _nulls(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None
