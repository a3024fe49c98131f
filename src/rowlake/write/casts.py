"""Casts of single columns that lose nothing: one rule for every way rows get into a table.

Comes in: an Arrow array of any primitive type. Goes out: the same values as the table's type, or
`SchemaMismatchError` with the column, the first value that does not fit, both types and the fix.

- numbers become any number that holds them exactly; a float is the decimal that it prints as;
- texts become numbers, booleans, dates and times where they read as one (`write.text_casts`);
- a timestamp at midnight becomes a date, a date a timestamp;
- an instant and a time without zone become one another in the session's time zone, where it is
  known here (`zone`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import SchemaMismatchError
from rowlake.model.type_names import sql_name
from rowlake.write.text_casts import cast_text
from rowlake.write.zones import in_zone

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


def cast_exactly(
    values: pa.Array,
    wanted: pa.Field,
    column: str,
    *,
    zone: str | None = None,
    first_row: int | None = None,
) -> pa.Array:
    """Return the values as the wanted type; raises where a value would change or not fit.

    `zone` is the session's, None where it is not known; `first_row` is the number of the first
    value among the rows of the source, for messages.
    """
    if not is_castable(values.type, wanted.type, zone):
        raise SchemaMismatchError(
            f"Cannot write {sql_name(pa.field('', values.type))} values to column {column} of type "
            f"{sql_name(wanted)}. Cast them first.",
            column=column,
        )
    try:
        return _cast(values, wanted.type, zone)
    except (pa.ArrowInvalid, OverflowError):
        place = _first_failing(values, lambda part: _cast(part, wanted.type, zone))
    row = None if first_row is None else first_row + place
    raise SchemaMismatchError(
        f"Cannot write {values[place].as_py()!r}{'' if row is None else f' (row {row:,})'} to "
        f"column {column}: {sql_name(pa.field('', values.type))} does not fit {sql_name(wanted)} "
        f"without losing data. {_fix(values.type, wanted.type)}",
        column=column,
        row=row,
    )


def _fix(given: pa.DataType, wanted: pa.DataType) -> str:
    types = pa.types
    if is_text(given):
        return "Correct the text, or leave the row out."
    if types.is_decimal(wanted) and (types.is_floating(given) or types.is_decimal(given)):
        return f"Round it to {wanted.scale} digits first, or widen the column."
    if types.is_timestamp(given):
        return "Truncate it first, or use a column that holds the time."
    return "Cast it first, or use a wider column."


def is_castable(given: pa.DataType, wanted: pa.DataType, zone: str | None = None) -> bool:
    """Return whether values of one type may become another; each value is checked on its own."""
    types = pa.types
    if is_text(given):
        return is_text(wanted) or _reads_text(wanted)
    if types.is_timestamp(wanted):
        return (
            types.is_timestamp(given)
            and ((given.tz is None) == (wanted.tz is None) or zone is not None)
        ) or (types.is_date(given) and (wanted.tz is None or zone is not None))
    if types.is_date(wanted) and types.is_timestamp(given):
        return given.tz is None or zone is not None
    for same in (types.is_boolean, types.is_date, types.is_time, is_text, _is_bytes):
        if same(wanted):
            return bool(same(given))
    return _is_number(given) and _is_number(wanted)


def _is_number(found: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(found) or types.is_floating(found) or types.is_decimal(found))


def _reads_text(wanted: pa.DataType) -> bool:
    types = pa.types
    return _is_number(wanted) or bool(
        types.is_boolean(wanted) or (types.is_temporal(wanted) and not types.is_duration(wanted))
    )


def is_text(found: pa.DataType) -> bool:
    """Return whether values are texts, in any layout."""
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


def _cast(values: pa.Array, to: pa.DataType, zone: str | None) -> pa.Array:
    types = pa.types
    if is_text(values.type):
        return values.cast(to) if is_text(to) else cast_text(values, to, zone)
    if types.is_timestamp(values.type) or types.is_date(values.type):
        return _cast_time(values, to, zone)
    if types.is_decimal(to):
        return _cast_to_decimal(values, to)
    if types.is_float32(to) and types.is_float64(values.type):
        return _narrowed(values, to)
    if types.is_floating(to) and types.is_integer(values.type):
        return _checked_back(values.cast(to), values)
    if types.is_floating(to) and types.is_decimal(values.type):
        return _float_of_decimal(values, to)
    if types.is_fixed_size_binary(to) and types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())  # Arrow casts between widths only through this
    if types.is_fixed_size_binary(to) and types.is_binary_view(values.type):
        values = values.cast(pa.binary())
    return values.cast(to)


def _cast_time(values: pa.Array, to: pa.DataType, zone: str | None) -> pa.Array:
    types = pa.types
    if types.is_timestamp(to) and types.is_date(values.type):
        values = values.cast(pa.timestamp(to.unit))
    if types.is_timestamp(values.type):
        has_zone = types.is_timestamp(to) and to.tz is not None
        if (values.type.tz is not None) != has_zone and zone is not None:
            values = in_zone(values, zone)
        if types.is_date(to):
            return _checked_back(values.cast(to), values)
    return values.cast(to)


def _cast_to_decimal(values: pa.Array, to: pa.DataType) -> pa.Array:
    if pa.types.is_floating(values.type):
        return values.cast(pa.string()).cast(to)  # the shortest decimal that reads as the float
    if pa.types.is_integer(values.type):
        # Arrow wants room for every long; the real check is the narrowing that follows.
        digits = min(DIGITS_OF_LONG + to.scale, WIDEST_DECIMAL)
        whole = values.cast(pa.decimal128(DIGITS_OF_LONG + 1, 0))
        values = whole.cast(pa.decimal128(max(digits, to.precision), to.scale))
    return values.cast(to)


def _float_of_decimal(values: pa.Array, to: pa.DataType) -> pa.Array:
    """Return the floats that print as the decimals."""
    found = values.cast(pa.string()).cast(to)
    if not pc.all(pc.equal(_cast_to_decimal(found, values.type), values), min_count=0).as_py():
        raise pa.ArrowInvalid("a value would be rounded")
    return found


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


def _first_failing(values: pa.Array, attempt: Callable[[pa.Array], pa.Array]) -> int:
    """Return the place of the first value whose cast fails, by halving."""
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            attempt(values.slice(low, middle - low))
            low = middle
        except (pa.ArrowInvalid, OverflowError):
            high = middle
    return low
