"""Python values as literals of Spark SQL."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from typing import Any

from rowlake.errors import InvalidStatementError
from rowlake.sqltext.lexer import string_literal

_DIGITS = 38  # of Spark's widest decimal
_NAMES = {math.inf: "Infinity", -math.inf: "-Infinity"}


def literal_text(value: Any) -> str:
    """Return a value as text that Spark reads back as the same value, in its type.

    A `datetime` with a zone is an instant, one without is a local time (TIMESTAMP_NTZ).
    """
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        value = value.item()  # numpy's scalars
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        if abs(value) >= 10**_DIGITS:
            raise InvalidStatementError(f"The number has more than {_DIGITS} digits.")
        return str(value)
    if isinstance(value, (float, decimal.Decimal)):
        return _fraction(value)
    if isinstance(value, (dt.date, dt.time)):
        return _moment(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"X'{bytes(value).hex()}'"
    if isinstance(value, (str, uuid.UUID)):
        return string_literal(str(value))
    raise InvalidStatementError(
        f"A {type(value).__name__} cannot be a value here; write it as the text of an expression."
    )


def _fraction(value: float | decimal.Decimal) -> str:
    if isinstance(value, decimal.Decimal):
        if not value.is_finite() or _digits(value) > _DIGITS:
            raise InvalidStatementError(f"{value} does not fit a decimal of {_DIGITS} digits.")
        return f"{value:f}BD"
    if math.isfinite(value):
        return f"{value!r}D"
    return f"double('{_NAMES.get(value, 'NaN')}')"


def _digits(value: decimal.Decimal) -> int:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # finite
    return len(digits) + exponent if exponent > 0 else max(len(digits), -exponent)


def _moment(value: dt.date | dt.time) -> str:
    if isinstance(value, dt.time):
        return f"TIME'{value.isoformat()}'"
    if not isinstance(value, dt.datetime):
        return f"DATE'{value.isoformat()}'"
    kind = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP_LTZ"
    return f"{kind}'{value.isoformat(sep=' ')}'"
