"""64-bit hashes of keys: equal keys have equal hashes, whatever the type they were promoted from.

Comes in: the key columns of some rows. Goes out: one `uint64` per row. Keys are equal as Spark
joins them: NaN equals NaN, -0.0 equals 0.0. Null has a hash of its own. Types fall into families,
within which promotions keep hashes: int and long, float and double, decimals of one scale. The
hashes are part of the file format of `rowlake.codecs.key_index`: they never change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rowlake.model.murmur3 import hash_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Hashes = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_NULL = np.uint64(0x6A09E667F3BCC909)
_DECIMAL_BYTES = 16


def family_of(kind: pa.DataType) -> str | None:
    """Return the family of a type; None for types that cannot be keys of an index."""
    if isinstance(kind, pa.BaseExtensionType):
        return family_of(kind.storage_type)
    if pt.is_decimal(kind):
        return f"decimal:{kind.scale}" if kind.bit_width <= 8 * _DECIMAL_BYTES else None
    if pt.is_timestamp(kind) or pt.is_time(kind):
        return f"{'timestamp' if pt.is_timestamp(kind) else 'time'}:{kind.unit}"
    if pt.is_integer(kind):
        return None if pt.is_uint64(kind) else "integer"
    if pt.is_fixed_size_binary(kind) or pt.is_binary(kind) or pt.is_large_binary(kind):
        return "bytes"
    tests = {
        "boolean": pt.is_boolean,
        "floating": lambda each: pt.is_float32(each) or pt.is_float64(each),
        "date": pt.is_date32,
        "text": lambda each: pt.is_string(each) or pt.is_large_string(each),
    }
    return next((name for name, test in tests.items() if test(kind)), None)


def hash_keys(columns: Sequence[pa.Array | pa.ChunkedArray]) -> Hashes:
    """Return the hash of each row's key; the types must have a family."""
    hashed: Hashes | None = None
    for column in columns:
        own = _hash_column(column)
        hashed = own if hashed is None else _mixed(hashed + _GOLDEN ^ own)
    assert hashed is not None
    return hashed


def _hash_column(column: Any) -> Hashes:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pt.is_dictionary(array.type):
        array = array.dictionary_decode()
    hashed = _hash_values(array)
    if array.null_count:
        hashed[np.asarray(array.is_null())] = _NULL
    return hashed


def _hash_values(array: pa.Array) -> Hashes:
    kind = array.type
    if pt.is_decimal(kind):
        return _hash_decimals(array)
    if family_of(kind) in ("text", "bytes"):
        return _mixed(hash_bytes(array).astype(np.uint64) + _lengths(array))
    if pt.is_floating(kind):
        values = np.asarray(array.cast(pa.float64()).fill_null(0.0)) + 0.0  # -0.0 becomes 0.0
        values[np.isnan(values)] = np.nan  # of all bit patterns, one
        return _mixed(values.view(np.uint64))
    if pt.is_boolean(kind):
        array = array.cast(pa.int8())
    elif pt.is_temporal(kind):
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    numbers = np.asarray(array.fill_null(0)).astype(np.int64)
    return _mixed(numbers.view(np.uint64))


def _lengths(array: pa.Array) -> Hashes:
    if pt.is_fixed_size_binary(array.type):
        return np.full(len(array), np.uint64(array.type.byte_width) << np.uint64(32))
    lengths = np.asarray(pc.binary_length(array).fill_null(0)).astype(np.uint64)
    return lengths << np.uint64(32)


def _hash_decimals(array: pa.Array) -> Hashes:
    """Hash unscaled values as 16 bytes, however many a narrower decimal takes in memory."""
    wide = array.cast(pa.decimal128(38, array.type.scale))
    held = wide.buffers()[1]
    if held is None or not len(wide):
        return np.full(len(wide), _NULL)
    words = np.frombuffer(held, np.uint64)[2 * wide.offset : 2 * (wide.offset + len(wide))]
    low, high = words[0::2], words[1::2]
    return _mixed(_mixed(low) + _GOLDEN ^ high)


def _mixed(values: Hashes) -> Hashes:
    """Return the values mixed so that every bit depends on all others (SplitMix64)."""
    mixed = values + _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))
