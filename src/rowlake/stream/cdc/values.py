"""Values as databases write them -> Python values of a column's type.

Comes in: what JSON holds or the text that PostgreSQL writes. Goes out: what Arrow takes for the
column. Whole numbers for dates are days, for times microseconds of the day; for timestamps they
are microseconds, or milliseconds where they would otherwise lie before 1973 (Debezium writes
either, and without its schema nothing else tells them apart).
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import re
import uuid
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import SchemaMismatchError
from rowlake.model.schema import type_name
from rowlake.stream.cdc.array_text import parse_array

if TYPE_CHECKING:
    from collections.abc import Callable

EPOCH = dt.datetime(1970, 1, 1)
_WHOLE_SECOND = len("2024-02-29 12:00:00")
_DAY_ZERO = dt.date(1970, 1, 1)
# Microseconds since 1970 until March 1973; as milliseconds that is the year 5138.
_FIRST_MICROS = 100_000_000_000_000
_TIMESTAMP = re.compile(
    r"^(\d{4,})-(\d\d)-(\d\d)[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?\s*"
    r"(Z|UTC|[+-]\d\d(?::?\d\d)?(?::?\d\d)?)?$"
)
_TIME = re.compile(r"^(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d(?::?\d\d)?)?$")


# What readers raise for a value that is none of their column.
UNREADABLE = (ValueError, TypeError, InvalidOperation, OverflowError, binascii.Error)


def unreadable(value: Any, field: pa.Field, error: Exception) -> SchemaMismatchError:
    """Return the error for a value that a reader of the column has refused."""
    return SchemaMismatchError(
        f"Cannot put {value!r:.80} into column {field.name} of type "
        f"{type_name(field) or field.type}: {error}.",
        column=field.name,
    )


def reader(field: pa.Field) -> Callable[[Any], Any]:
    """Return what turns a value that is not null into one of this column, or raises."""
    kind, types = field.type, pa.types
    if type_name(field) == "uuid":
        return _uuid
    if types.is_list(kind) or types.is_large_list(kind):
        return _list_reader(kind.value_field)
    if types.is_decimal(kind):
        return _decimal_reader(kind.scale)
    if types.is_timestamp(kind):
        return _aware if kind.tz else _naive
    for test, read in _READERS:
        if test(kind):
            return read
    return lambda value: json.loads(value) if isinstance(value, str) else value


def _boolean(value: Any) -> bool:
    if isinstance(value, str):
        return {"t": True, "true": True, "f": False, "false": False}[value.lower()]
    return bool(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (dict, list)):
        return json.dumps(value)
    return value.decode() if isinstance(value, bytes) else str(value)


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        if value.startswith("\\x"):
            return bytes.fromhex(value[2:])
        return base64.b64decode(value, validate=True)
    return bytes(value)


def _uuid(value: Any) -> bytes:
    return value if isinstance(value, bytes) else uuid.UUID(str(value)).bytes


def _decimal_reader(scale: int) -> Callable[[Any], Decimal]:
    unit = Decimal(1).scaleb(-scale)

    def read(value: Any) -> Decimal:
        found = value if isinstance(value, Decimal) else Decimal(str(value))
        exact = found.quantize(unit)
        if exact != found:
            raise ValueError(f"it has more than {scale} digits after the point")
        return exact

    return read


def _list_reader(element: pa.Field) -> Callable[[Any], list[Any]]:
    read = reader(element)

    def read_all(value: Any) -> list[Any]:
        items = parse_array(value) if isinstance(value, str) else value
        return [None if item is None else read(item) for item in items]

    return read_all


def _date(value: Any) -> dt.date:
    if isinstance(value, dt.datetime):
        return value.date()
    if isinstance(value, int):
        return _DAY_ZERO + dt.timedelta(days=value)
    return dt.date.fromisoformat(value) if isinstance(value, str) else value


def _time(value: Any) -> dt.time:
    if isinstance(value, int):
        return (EPOCH + dt.timedelta(microseconds=value)).time()
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]
    found = _TIME.match(value)
    if found is None:
        raise ValueError("it is no time of day")
    hour, minute, second, fraction, _ = found.groups()
    return dt.time(int(hour), int(minute), int(second or 0), _micros(fraction))


def _naive(value: Any) -> dt.datetime:
    found = _moment(value)
    if found.tzinfo is None:
        return found
    return found.astimezone(dt.timezone.utc).replace(tzinfo=None)


def _aware(value: Any) -> dt.datetime:
    found = _moment(value)
    return found if found.tzinfo else found.replace(tzinfo=dt.timezone.utc)


def _moment(value: Any) -> dt.datetime:
    if isinstance(value, dt.datetime):
        return value
    if isinstance(value, int):
        micros = value if abs(value) >= _FIRST_MICROS or value == 0 else value * 1000
        return EPOCH + dt.timedelta(microseconds=micros)
    if len(value) >= _WHOLE_SECOND:
        with suppress(ValueError):  # far quicker, but older versions of Python know few forms
            return dt.datetime.fromisoformat(value)
    found = _TIMESTAMP.match(value)
    if found is None:
        raise ValueError("it is no timestamp")
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    moment = dt.datetime(
        int(year), int(month), int(day), int(hour), int(minute), int(second or 0), _micros(fraction)
    )
    return moment if zone is None else moment.replace(tzinfo=_zone(zone))


def _micros(fraction: str | None) -> int:
    return int((fraction or "0").ljust(6, "0")[:6])


@lru_cache(maxsize=256)
def _zone(text: str) -> dt.timezone:
    if text in ("Z", "UTC"):
        return dt.timezone.utc
    digits = text[1:].replace(":", "").ljust(6, "0")
    parts = [int(digits[at : at + 2]) for at in (0, 2, 4)]
    offset = dt.timedelta(hours=parts[0], minutes=parts[1], seconds=parts[2])
    return dt.timezone(-offset if text[0] == "-" else offset)


_READERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], Any]], ...] = (
    (pa.types.is_boolean, _boolean),
    (pa.types.is_integer, int),
    (pa.types.is_floating, float),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), _text),
    (
        lambda kind: (
            pa.types.is_binary(kind)
            or pa.types.is_large_binary(kind)
            or pa.types.is_fixed_size_binary(kind)
        ),
        _bytes,
    ),
    (pa.types.is_date, _date),
    (pa.types.is_time, _time),
)
