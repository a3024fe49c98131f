"""Partition values as people read them: the text in the folder names of data files.

Comes in: an Arrow scalar of a partition field and its transform. Goes out: text equal to what
Iceberg Java makes (`2024-03`, `2024-01-01T10:00:00+00:00`, base64 for bytes, `null`). Nothing
ever parses these names back, so they need not be unambiguous.
"""

from __future__ import annotations

import base64
import math
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable


def human_text(transform: str, value: pa.Scalar, *, is_uuid: bool = False) -> str:
    """Return the text of one partition value."""
    if not value.is_valid:
        return "null"
    if transform in _OF_TRANSFORM:
        return _OF_TRANSFORM[transform](value.cast(pa.int32()).as_py())
    if is_uuid:
        return str(uuid.UUID(bytes=value.as_py()))
    return _text_of_type(value)


def _text_of_type(value: pa.Scalar) -> str:
    kind = value.type
    if pa.types.is_date32(kind):
        return _day(value.cast(pa.int32()).as_py())
    if pa.types.is_timestamp(kind):
        return _timestamp(value)
    if pa.types.is_time(kind):
        return _time(value.cast(pa.time64("us")).cast(pa.int64()).as_py())
    if pa.types.is_floating(kind):
        return _floating(value.as_py(), single=pa.types.is_float32(kind))
    return _plain(value.as_py())


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return str(value)


def _year(years: int) -> str:
    return f"{1970 + years:04d}"


def _month(months: int) -> str:
    return f"{1970 + months // 12:04d}-{1 + months % 12:02d}"


def _day(days: int) -> str:
    return str(np.datetime64(days, "D"))


def _hour(hours: int) -> str:
    return f"{_day(hours // 24)}-{hours % 24:02d}"


def _timestamp(value: pa.Scalar) -> str:
    text = str(np.datetime64(value.cast(pa.int64()).as_py(), value.type.unit))
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    zone = "+00:00" if value.type.tz else ""
    return f"{whole}.{fraction}{zone}" if fraction else f"{whole}{zone}"


def _time(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    if not fraction:
        return f"{text}:{seconds % 60:02d}" if seconds % 60 else text
    digits = f"{fraction:06d}"
    return f"{text}:{seconds % 60:02d}.{digits[:3] if digits.endswith('000') else digits}"


def _floating(value: float, *, single: bool) -> str:
    """Return the number as Java prints it: `1.0E10` for what is very large or very small."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    number = np.float32(value) if single else np.float64(value)
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return np.format_float_positional(number, trim="0")
    mantissa, _, exponent = np.format_float_scientific(number, trim="0").partition("e")
    return f"{mantissa}E{int(exponent)}"


_OF_TRANSFORM: dict[str, Callable[[int], str]] = {
    "year": _year,
    "month": _month,
    "day": _day,
    "hour": _hour,
}
