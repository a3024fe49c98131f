"""Where a literal stands among the values that a column can hold.

A literal is one of them, or lies between two neighbours, or outside of the range (one neighbour
is missing). Numbers compare as Spark compares them: with a double column, any number becomes a
double first; with integers and decimals, exactly.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowlake.errors import InvalidStatementError
from rowlake.model.schema import type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_EXACT_DOUBLE_DIGITS = 15
_EXACT_DOUBLE_INTEGER = 2**53
_WIDE = Context(prec=400)


@dataclass(frozen=True)
class Placed:
    """A literal's place: `value` where the column can hold it, else its neighbours (if any)."""

    value: Any = None
    below: Any = None
    above: Any = None
    is_exact: bool = False
    is_nan: bool = False


def place(value: Any, column: pa.Field) -> Placed:
    """Return a literal's place; raises where the column's type cannot be compared with it."""
    kind = column.type
    for test, convert in _CONVERSIONS:
        if test(kind):
            return convert(value, column)
    raise _mismatch(value, column)


def place_all(values: Collection[Any], column: pa.Field) -> tuple[tuple[Any, ...], bool]:
    """Return the literals that the column can hold, each once, and whether NaN is among them.

    Long lists of values of the column's own type are not placed one by one.
    """
    distinct = dict.fromkeys(values)
    if _all_fit(distinct, column):
        return tuple(distinct), False
    placed = [place(value, column) for value in distinct]
    exact = dict.fromkeys(each.value for each in placed if each.is_exact)
    return tuple(exact), any(each.is_nan for each in placed)


def _all_fit(values: Collection[Any], column: pa.Field) -> bool:
    kinds, to = set(map(type, values)), column.type
    if kinds == {int} and pa.types.is_signed_integer(to):
        limit = 2 ** (to.bit_width - 1)
        return bool(-limit <= min(values) and max(values) < limit)
    if kinds == {str}:
        return bool(pa.types.is_string(to) or pa.types.is_large_string(to))
    return kinds == {bytes} and bool(pa.types.is_binary(to))


def _exactly(value: Any) -> Placed:
    return Placed(value=value, is_exact=True)


def _mismatch(value: Any, column: pa.Field, why: str = "") -> InvalidStatementError:
    kind = type_name(column) or column.type
    reason = f": {why}" if why else ""
    return InvalidStatementError(
        f"Cannot compare column {column.name} of type {kind} with "
        f"{value!r} ({type(value).__name__}){reason}."
    )


def _boolean(value: Any, column: pa.Field) -> Placed:
    if isinstance(value, (bool, np.bool_)):
        return _exactly(bool(value))
    raise _mismatch(value, column)


def _number(value: Any, column: pa.Field) -> int | float | Decimal:
    if isinstance(value, (bool, np.bool_)):
        raise _mismatch(value, column)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, Decimal) and value.is_finite():
        return value
    raise _mismatch(value, column)


def _integer(value: Any, column: pa.Field) -> Placed:
    number = _number(value, column)
    bits = column.type.bit_width
    blurred = isinstance(number, float) and _EXACT_DOUBLE_INTEGER <= abs(number) < 2**63
    if blurred and bits == 64:
        raise _mismatch(value, column, "a double cannot tell such numbers apart")
    lowest, highest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return _on_line(number, lowest, highest, int)


def _on_line(
    number: float | Decimal | Fraction,
    lowest: int,
    highest: int,
    make: Callable[[int], Any],
) -> Placed:
    """Return the place of a number among whole numbers from `lowest` to `highest`.

    NaN is above all of them, as it is among floating-point numbers.
    """
    if isinstance(number, float) and not math.isfinite(number):
        number = lowest - 1 if number < 0 else highest + 1
    floor = math.floor(number)
    if floor == number and lowest <= floor <= highest:
        return _exactly(make(floor))
    ceiling = floor if floor == number else floor + 1
    below = None if floor < lowest else make(min(floor, highest))
    above = None if ceiling > highest else make(max(ceiling, lowest))
    return Placed(below=below, above=above)


def _floating(value: Any, column: pa.Field) -> Placed:
    number = _number(value, column)
    single = pa.types.is_float32(column.type)
    try:
        with np.errstate(over="ignore"):
            rounded = np.float32(number) if single and isinstance(number, int) else number
        wide = float(rounded)
    except OverflowError:
        wide = math.inf if number > 0 else -math.inf
    if math.isnan(wide):
        return Placed(is_nan=True)
    if not single:
        return Placed(value=wide, is_exact=True)
    return _single(wide)


def _single(wide: float) -> Placed:
    """Return the place of a double among floats."""
    with np.errstate(over="ignore"):
        near = np.float32(wide)
    if float(near) == wide:
        return Placed(value=float(near), is_exact=True)
    if float(near) < wide:
        other = np.nextafter(near, np.float32(np.inf))
        return Placed(below=float(near), above=float(other))
    other = np.nextafter(near, np.float32(-np.inf))
    return Placed(below=float(other), above=float(near))


def _decimal(value: Any, column: pa.Field) -> Placed:
    number, kind = _number(value, column), column.type
    if isinstance(number, float):
        return _decimal_as_double(number, column)
    highest = 10**kind.precision - 1
    scaled = Fraction(number) * 10**kind.scale
    return _on_line(scaled, -highest, highest, lambda unscaled: _scaled(unscaled, kind))


def _scaled(unscaled: int, kind: pa.DataType) -> Decimal:
    return Decimal(unscaled).scaleb(-kind.scale, _WIDE)


def _decimal_as_double(number: float, column: pa.Field) -> Placed:
    """Spark compares a decimal with a double as doubles: look for decimals that become it."""
    kind = column.type
    if not abs(number) < 10.0 ** (kind.precision - kind.scale):
        highest = 10**kind.precision - 1
        outside = -highest - 1 if number < 0 else highest + 1
        return _on_line(outside, -highest, highest, lambda unscaled: _scaled(unscaled, kind))
    if kind.precision > _EXACT_DOUBLE_DIGITS:
        raise _mismatch(number, column, "a double cannot tell such numbers apart")
    unit = Decimal(1).scaleb(-kind.scale)
    nearest = Decimal(repr(number)).quantize(unit, context=_WIDE)
    if float(nearest) == number:
        return _exactly(nearest)
    floor = Decimal(number).quantize(unit, rounding=ROUND_FLOOR, context=_WIDE)
    return Placed(below=floor, above=floor + unit)


def _date(value: Any, column: pa.Field) -> Placed:
    if isinstance(value, str):
        value = _parsed(dt.date.fromisoformat, value, column)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return _exactly(value)
    raise _mismatch(value, column)


def _time(value: Any, column: pa.Field) -> Placed:
    if isinstance(value, str):
        value = _parsed(dt.time.fromisoformat, value, column)
    if isinstance(value, dt.time) and value.tzinfo is None:
        return _exactly(value)
    raise _mismatch(value, column)


def _parsed(parse: Callable[[str], Any], text: str, column: pa.Field) -> Any:
    try:
        return parse(text)
    except ValueError as error:
        raise _mismatch(text, column) from error


def _timestamp(value: Any, column: pa.Field) -> Placed:
    zoned = column.type.tz is not None
    if isinstance(value, np.datetime64):
        return _nanoseconds(value, column)
    if isinstance(value, str):
        value = _parsed(dt.datetime.fromisoformat, value.replace("Z", "+00:00"), column)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime) and not zoned:
        value = dt.datetime.combine(value, dt.time())
    if not isinstance(value, dt.datetime):
        raise _mismatch(value, column)
    if (value.tzinfo is not None) is not zoned:
        raise _mismatch(value, column, "one has a time zone and the other has none")
    value = value.astimezone(dt.timezone.utc) if zoned else value
    return _in_range_of_nanoseconds(value) if column.type.unit == "ns" else _exactly(value)


def _in_range_of_nanoseconds(value: dt.datetime) -> Placed:
    since = value.replace(tzinfo=None) - dt.datetime(1970, 1, 1)
    nanos = (since // dt.timedelta(microseconds=1)) * 1_000
    placed = _on_line(nanos, -(2**63) + 1, 2**63 - 1, lambda number: np.datetime64(number, "ns"))
    return _exactly(value) if placed.is_exact else placed


def _nanoseconds(value: np.datetime64, column: pa.Field) -> Placed:
    """Return the place of an instant finer than Python's; in UTC for columns with a zone."""
    if np.isnat(value):
        raise _mismatch(value, column)
    unit = column.type.unit
    fine = value.astype("datetime64[ns]")
    if unit == "ns":
        return _exactly(fine)
    zone = dt.timezone.utc if column.type.tz else None
    per_unit = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}[unit]

    def instant(number: int) -> Any:
        return np.datetime64(number, unit).astype("datetime64[us]").item().replace(tzinfo=zone)

    return _on_line(Fraction(int(fine.view(np.int64)), per_unit), -(2**62), 2**62, instant)


def _text(value: Any, column: pa.Field) -> Placed:
    if isinstance(value, str):
        return _exactly(value)
    raise _mismatch(value, column)


def _bytes(value: Any, column: pa.Field) -> Placed:
    if type_name(column) == "uuid":
        return _exactly(_uuid(value, column).bytes)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _exactly(bytes(value))
    raise _mismatch(value, column)


def _uuid(value: Any, column: pa.Field) -> uuid.UUID:
    if isinstance(value, uuid.UUID):
        return value
    try:
        return uuid.UUID(value) if isinstance(value, str) else uuid.UUID(bytes=bytes(value))
    except (ValueError, TypeError) as error:
        raise _mismatch(value, column) from error


_CONVERSIONS: list[tuple[Callable[[pa.DataType], bool], Callable[[Any, pa.Field], Placed]]] = [
    (pa.types.is_boolean, _boolean),
    (pa.types.is_signed_integer, _integer),
    (pa.types.is_floating, _floating),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_date32, _date),
    (pa.types.is_time, _time),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_string, _text),
    (pa.types.is_large_string, _text),
    (pa.types.is_fixed_size_binary, _bytes),
    (pa.types.is_binary, _bytes),
    (pa.types.is_large_binary, _bytes),
]
