"""Casts of single columns that lose nothing.

Comes in: an Arrow array of any primitive type. Goes out: the same values as the table's type, or
`SchemaMismatchError` with the column and the first value that does not fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import SchemaMismatchError
from rowlake.model.schema import type_name

if TYPE_CHECKING:
    from collections.abc import Callable

WIDEST_DECIMAL = 38
DIGITS_OF_LONG = 19


def decoded(values: pa.Array) -> pa.Array:
    """Return the values without dictionary, run-end, extension and view layouts."""
    while True:
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        elif pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        elif pa.types.is_run_end_encoded(values.type):
            values = pc.run_end_decode(values)
        else:
            return values


def cast_exactly(values: pa.Array, wanted: pa.Field, column: str) -> pa.Array:
    """Return the values as the wanted type; raises where a value would change or not fit."""
    if not _is_castable(values.type, wanted.type):
        raise SchemaMismatchError(
            f"Cannot write {values.type} values to column {column} of type "
            f"{type_name(wanted) or wanted.type}. Cast them first.",
            column=column,
        )
    try:
        return _cast(values, wanted.type)
    except (pa.ArrowInvalid, OverflowError):
        sample = _first_failing(values, lambda part: _cast(part, wanted.type))
        raise SchemaMismatchError(
            f"Cannot write {sample!r} to column {column} of type "
            f"{type_name(wanted) or wanted.type} without losing data.",
            column=column,
        ) from None


def _is_castable(given: pa.DataType, wanted: pa.DataType) -> bool:
    types = pa.types
    if types.is_timestamp(wanted):
        return (types.is_timestamp(given) and (given.tz is None) == (wanted.tz is None)) or (
            types.is_date(given) and wanted.tz is None
        )
    for same in (types.is_boolean, types.is_date, types.is_time, _is_text, _is_bytes):
        if same(wanted):
            return bool(same(given))
    if types.is_decimal(wanted):
        return bool(types.is_decimal(given) or types.is_integer(given))
    number = types.is_integer(given) or types.is_floating(given)
    return bool(number and (types.is_integer(wanted) or types.is_floating(wanted)))


def _is_text(found: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(found) or types.is_large_string(found) or types.is_string_view(found)
    )


def _is_bytes(found: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(found)
        or types.is_large_binary(found)
        or types.is_binary_view(found)
        or types.is_fixed_size_binary(found)
    )


def _cast(values: pa.Array, to: pa.DataType) -> pa.Array:
    types = pa.types
    if types.is_decimal(to):
        return _cast_to_decimal(values, to)
    if types.is_float32(to) and types.is_float64(values.type):
        return _narrowed(values, to)
    if types.is_floating(to) and types.is_integer(values.type):
        return _checked_back(values.cast(to), values)
    if types.is_fixed_size_binary(to) and types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())  # Arrow casts between widths only through this
    if types.is_fixed_size_binary(to) and types.is_binary_view(values.type):
        values = values.cast(pa.binary())
    return values.cast(to)


def _cast_to_decimal(values: pa.Array, to: pa.DataType) -> pa.Array:
    if pa.types.is_integer(values.type):
        # Arrow wants room for every long; the real check is the narrowing that follows.
        digits = min(DIGITS_OF_LONG + to.scale, WIDEST_DECIMAL)
        whole = values.cast(pa.decimal128(DIGITS_OF_LONG + 1, 0))
        values = whole.cast(pa.decimal128(max(digits, to.precision), to.scale))
    return values.cast(to)


def _narrowed(values: pa.Array, to: pa.DataType) -> pa.Array:
    return _checked_back(values.cast(to, safe=False), values)


def _checked_back(narrow: pa.Array, values: pa.Array) -> pa.Array:
    """Return the cast values if casting them back gives the same (NaN counts as the same)."""
    back = narrow.cast(values.type, safe=False)
    same = pc.equal(back, values)
    if pa.types.is_floating(values.type):
        same = pc.or_(same, pc.is_nan(values))
    if pc.all(same).as_py() is False:
        raise pa.ArrowInvalid("a value would be rounded")
    return narrow


def _first_failing(values: pa.Array, attempt: Callable[[pa.Array], pa.Array]) -> object:
    """Return the first value whose cast fails, by halving."""
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            attempt(values.slice(low, middle - low))
            low = middle
        except (pa.ArrowInvalid, OverflowError):
            high = middle
    return values[low].as_py()
