"""A file's primitive values as the table's types.

Comes in: an array as a file reader gives it. Goes out: the same values as the table's type:
promoted (int to long, double or decimal, float to double, wider decimals, date to timestamp), with
another Arrow encoding of the same type undone (dictionaries, large strings), or with the time unit
and zone of the table. Anything else is refused: the file does not belong to the column.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

Converter = Callable[[pa.Array], pa.Array]


class TypeMismatchError(ValueError):
    """A file's type cannot be read as the table's."""


def primitive_converter(source: pa.DataType, target: pa.DataType) -> Converter | None:
    """Return what turns arrays of one type into another; None where they are the same.

    Raises `TypeMismatchError` where the table's type cannot hold the file's.
    """
    if source.equals(target):
        return None
    if isinstance(source, pa.BaseExtensionType):  # also Arrow's own, like uuid
        return _after(_storage, primitive_converter(source.storage_type, target))
    if pt.is_dictionary(source):
        return _after(_decoded, primitive_converter(source.value_type, target))
    if pt.is_null(source):
        return lambda array: pa.nulls(len(array), target)
    if pt.is_timestamp(source) and pt.is_timestamp(target):
        return lambda array: _timestamps(array, target)
    if not _fits(source, target):
        raise TypeMismatchError(f"{source} in the file, {target} in the table")
    return lambda array: array.cast(target)


def _after(first: Converter, then: Converter | None) -> Converter:
    return first if then is None else lambda array: then(first(array))


def _storage(array: pa.Array) -> pa.Array:
    return array.storage


def _decoded(array: pa.Array) -> pa.Array:
    return array.dictionary_decode()


def _timestamps(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return the same instants; a file's finer unit is cut down, never rounded up."""
    try:
        return array.cast(target)
    except pa.ArrowInvalid:
        unit = {"us": "microsecond", "ms": "millisecond", "ns": "nanosecond"}[target.unit]
        return pc.floor_temporal(array, unit=unit).cast(target)


def _fits(source: pa.DataType, target: pa.DataType) -> bool:
    if pt.is_integer(source):
        return _integer_fits(source, target)
    if pt.is_floating(source):
        return bool(pt.is_floating(target) and target.bit_width >= source.bit_width)
    if pt.is_decimal(source):
        return _decimal_fits(source.precision, source.scale, target)
    if pt.is_date(source):
        return bool(pt.is_date(target) or (pt.is_timestamp(target) and target.tz is None))
    if pt.is_time(source):
        return bool(pt.is_time(target))
    return _is_bytes(source) and _is_bytes(target)


def _integer_fits(source: pa.DataType, target: pa.DataType) -> bool:
    if pt.is_integer(target):
        return bool(target.bit_width >= source.bit_width)
    if pt.is_float64(target):
        return bool(source.bit_width <= 32)
    if pt.is_decimal(target):
        return _decimal_fits(10 if source.bit_width <= 32 else 20, 0, target)
    # ORC keeps a time of day as a plain long.
    return bool(pt.is_time64(target) and source.bit_width == 64)


def _decimal_fits(precision: int, scale: int, target: pa.DataType) -> bool:
    """Return whether a decimal can hold all digits; of one scale Arrow itself checks the values."""
    if not pt.is_decimal(target) or target.scale < scale:
        return False
    more = target.scale - scale
    return not more or bool(target.precision - precision >= more)


def _is_bytes(arrow_type: pa.DataType) -> bool:
    return any(
        test(arrow_type)
        for test in (
            pt.is_string,
            pt.is_large_string,
            pt.is_string_view,
            pt.is_binary,
            pt.is_large_binary,
            pt.is_binary_view,
            pt.is_fixed_size_binary,
        )
    )
