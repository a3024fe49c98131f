"""Columns as pyarrow's ORC writer has to get them.

ORC stores the fields of a struct only for rows where the struct is there. pyarrow's writer leaves
the fields of a missing struct out where they are null themselves; it makes them so for a struct
whose parent has nulls, but forgets it below a struct without any, and then every value after the
first missing struct is read as another row's. It also takes the nulls of a slice of structs from
the rows before it. So columns with structs are unsliced, and nulls of structs are put into their
fields.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def writable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with the same values that is written right."""
    if not pa.types.is_nested(column.type):
        return column
    whole = [pa.concat_arrays([chunk]) for chunk in column.chunks]
    if _has_struct(column.type):
        whole = [_pushed(chunk, None) for chunk in whole]
    return pa.chunked_array(whole, column.type)


def _has_struct(kind: pa.DataType) -> bool:
    below = [kind.field(at).type for at in range(kind.num_fields)]
    return pa.types.is_struct(kind) or any(map(_has_struct, below))


def _pushed(values: pa.Array, there: pa.Array | None) -> pa.Array:
    """Return values that are null wherever the struct around them is (`there`: where it is not)."""
    kind = values.type
    if pa.types.is_struct(kind):
        valid = values.is_valid() if there is None else pc.and_(there, values.is_valid())
        fields = [_pushed(values.field(at), valid) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=pc.invert(valid))
    if pa.types.is_map(kind):
        values = _lists(values, there)
        items = _pushed(values.items, None)
        return pa.MapArray.from_arrays(
            values.offsets, values.keys, items, type=kind, mask=_nulls(values)
        )
    if pa.types.is_list(kind):
        values = _lists(values, there)
        held = _pushed(values.values, None)
        return pa.ListArray.from_arrays(values.offsets, held, type=kind, mask=_nulls(values))
    return values if there is None else pc.if_else(there, values, pa.scalar(None, kind))


def _lists(values: pa.Array, there: pa.Array | None) -> pa.Array:
    """Return lists or maps, null and empty where the struct around them is missing."""
    if there is None or not pc.any(pc.and_not(values.is_valid(), there)).as_py():
        return values
    rows = pa.array(np.arange(len(values)))
    return values.take(pc.if_else(there, rows, pa.scalar(None, rows.type)))


def _nulls(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None
