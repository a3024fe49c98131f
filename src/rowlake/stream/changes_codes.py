"""Numbers for rows, equal exactly where the rows are.

Comes in: columns of any type, nested ones too. Goes out: one whole number per row. Null equals
null and NaN equals NaN; -0.0 and 0.0 differ. No loop over rows: each column becomes codes (places
among its distinct values), a list the bytes of its elements' codes, and codes of several columns
are joined to one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rowlake.prune.metrics import one_array

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Codes = NDArray[np.int64]


def row_codes(columns: Iterable[pa.Array | pa.ChunkedArray], size: int) -> Codes:
    """Return the numbers of `size` rows; without columns all rows are equal."""
    return _joined((_codes(one_array(column)) for column in columns), size)


def occurrences(codes: Codes) -> Codes:
    """Return how many rows before each one have its code."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1])
    lengths = np.diff(np.concatenate([starts, [len(ordered)]]))
    found = np.empty(len(codes), np.int64)
    found[order] = np.arange(len(codes)) - np.repeat(starts, lengths)
    return found


def _joined(parts: Iterable[Codes], size: int) -> Codes:
    found, distinct = np.zeros(size, np.int64), 1
    for codes in parts:
        count = int(codes.max(initial=0)) + 1
        found, distinct = found * count + codes, distinct * count
        if distinct > size:
            values, found = np.unique(found, return_inverse=True)
            distinct = len(values)
    return found


def _codes(values: pa.Array) -> Codes:
    if pt.is_struct(values.type):
        valid = np.asarray(values.is_valid()).astype(np.int64)
        return _joined([valid, *(_codes(part) for part in values.flatten())], len(values))
    if pt.is_map(values.type) or pt.is_list(values.type) or pt.is_large_list(values.type):
        return _list_codes(values)
    if pt.is_null(values.type):
        return np.zeros(len(values), np.int64)
    if pt.is_floating(values.type):
        values = _bits(values)
    encoded = values.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64)


def _bits(values: pa.Array) -> pa.Array:
    """Return floats as their bits, all NaNs alike."""
    same = pc.if_else(pc.is_nan(values), pa.scalar(np.nan, values.type), values)
    return same.view(pa.int32() if pt.is_float32(values.type) else pa.int64())


def _list_codes(values: pa.Array) -> Codes:
    lists: Any = values.take(pa.array(np.arange(len(values))))  # at an offset of 0, nulls empty
    if pt.is_map(values.type):
        elements = _joined([_codes(lists.keys), _codes(lists.items)], len(lists.keys))
    else:
        elements = _codes(lists.values)
    offsets = pa.py_buffer(np.asarray(lists.offsets).astype(np.int64) * 8)
    content = pa.py_buffer(np.ascontiguousarray(elements))
    texts = pa.Array.from_buffers(pa.large_binary(), len(lists), [None, offsets, content])
    valid = np.asarray(lists.is_valid()).astype(np.int64)
    return _joined([valid, np.asarray(texts.dictionary_encode().indices)], len(lists))
