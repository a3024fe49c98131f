"""Literals of Spark SQL, as typed Python values.

Comes in: tokens, or a value that the user passed as an argument. Goes out: a `Literal` with the
type that Spark gives it, or None for what is not a literal (or not surely one value).
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from rowlake.sqltext.lexer import Kind, Token

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WIDE = decimal.Context(prec=80)
# Longer ones fit no type of Spark's, and take Python long to read.
_LONGEST_INTEGER = 1_000
_FURTHEST_EXPONENT = 1_000


@dataclass(frozen=True)
class Literal:
    """A value and its kind.

    Kinds: `null`, `boolean`, `integer`, `decimal`, `float`, `double`, `string`, `binary`, `date`,
    `timestamp` (an instant; naive where the text has no zone, to be read in the session's),
    `timestamp_ntz`.
    """

    kind: str
    value: Any = None


NULL = Literal("null")

_NUMBER = re.compile(r"(?P<digits>[0-9.]+(?:[eE][+-]?[0-9]+)?)(?P<suffix>BD|[LSYDF])?", re.I)
_MOMENT = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?:[ T](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?)?"
    r"\s?(Z|UTC|[+-]\d{2}:\d{2})?"
)


def literal_of(tokens: Sequence[Token], arguments: Mapping[str | int, Any]) -> Literal | None:
    """Return the literal that these tokens are.

    `arguments` has the values of `:name` parameters by name and those of `?` by offset.
    """
    if len(tokens) == 1:
        return _single(tokens[0], arguments)
    if len(tokens) == 2:
        return _double(tokens[0], tokens[1])
    return None


def _single(token: Token, arguments: Mapping[str | int, Any]) -> Literal | None:
    if token.kind is Kind.NUMBER:
        return number(token.text)
    if token.kind is Kind.STRING:
        return Literal("string", token.value)
    if token.kind is Kind.PARAMETER:
        key = token.text[1:] or token.start
        return from_python(arguments[key]) if key in arguments else None
    if token.word in ("TRUE", "FALSE"):
        return Literal("boolean", token.word == "TRUE")
    return NULL if token.word == "NULL" else None


def _double(first: Token, second: Token) -> Literal | None:
    if first.text in ("-", "+") and second.kind is Kind.NUMBER:
        return number(second.text, negative=first.text == "-")
    if second.kind is not Kind.STRING:
        return None
    if first.word == "X" and first.end == second.start:
        return _binary(second.value)
    if first.word == "DATE":
        moment = parse_moment(second.value)
        return Literal("date", moment.date()) if moment and len(second.value) == 10 else None
    if first.word in ("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"):
        return _timestamp(first.word, second.value)
    return None


def _binary(text: str) -> Literal | None:
    try:
        return Literal("binary", bytes.fromhex(text if len(text) % 2 == 0 else "0" + text))
    except ValueError:
        return None


def _timestamp(word: str, text: str) -> Literal | None:
    moment = parse_moment(text)
    if moment is None:
        return None
    if word == "TIMESTAMP_NTZ":
        return None if moment.tzinfo else Literal("timestamp_ntz", moment)
    return Literal("timestamp", moment)


def number(text: str, *, negative: bool = False) -> Literal | None:
    """Return the literal of a number as Spark types it; None where it is too big for any."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    digits, suffix = match["digits"], (match["suffix"] or "").upper()
    sign = "-" if negative else ""
    if suffix == "D" or (not suffix and "e" in digits.lower()):
        return Literal("double", float(sign + digits))
    if suffix == "F":
        return Literal("float", float(sign + digits))
    if suffix == "BD" or "." in digits:
        return _decimal(sign + digits)
    if suffix in ("L", "S", "Y") or digits.isdecimal():
        if len(digits) > _LONGEST_INTEGER:
            return None
        value = int(sign + digits)
        return (
            Literal("integer", value) if -(1 << 63) <= value < 1 << 63 else _decimal(sign + digits)
        )
    return None


def _decimal(text: str) -> Literal | None:
    try:
        value = _WIDE.create_decimal(text)
    except decimal.DecimalException:  # an exponent that no decimal has
        return None
    if len(value.as_tuple().digits) > 38 or abs(value.adjusted()) > _FURTHEST_EXPONENT:
        return None
    return Literal("decimal", value)


def parse_moment(text: str) -> dt.datetime | None:
    """Return the moment that a well-formed text says; None where Spark may read it otherwise."""
    match = _MOMENT.fullmatch(text)
    if match is None or (match[8] and not match[4]):
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    micros = int((match[7] or "0").ljust(6, "0"))
    try:
        naive = dt.datetime(year, month, day, hour, minute, second, micros)
        return naive if not match[8] else naive.replace(tzinfo=_offset(match[8]))
    except ValueError:
        return None


def _offset(text: str) -> dt.tzinfo:
    if text in ("Z", "UTC"):
        return dt.timezone.utc
    sign = -1 if text[0] == "-" else 1
    return dt.timezone(sign * dt.timedelta(hours=int(text[1:3]), minutes=int(text[4:6])))


def instant(moment: dt.datetime, zone: str | None) -> dt.datetime | None:
    """Return a moment in UTC; one without a zone is read in the session's, None where unknown."""
    if moment.tzinfo is None:
        found = session_zone(zone)
        if found is None:
            return None
        moment = moment.replace(tzinfo=found)
    try:
        return moment.astimezone(dt.timezone.utc)
    except OverflowError:
        return None


def session_zone(zone: str | None) -> dt.tzinfo | None:
    """Return the session's time zone; None where it is not given or not known here."""
    if zone is None:
        return None
    if zone in ("UTC", "Z", "GMT"):
        return dt.timezone.utc
    if re.fullmatch(r"[+-]\d{2}:\d{2}", zone):
        return _offset(zone)
    try:
        return ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        return None


def from_python(value: Any) -> Literal | None:
    """Return the literal that Spark makes of an argument."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return Literal("boolean", value)
    if isinstance(value, int):
        return Literal("integer", value) if -(1 << 63) <= value < 1 << 63 else None
    if isinstance(value, float):
        return Literal("double", value) if value == value else None
    if isinstance(value, decimal.Decimal):
        return Literal("decimal", value) if value.is_finite() else None
    if isinstance(value, dt.datetime):
        return Literal("timestamp", value) if value.tzinfo else None
    kinds = {str: "string", bytes: "binary", bytearray: "binary", dt.date: "date"}
    kind = kinds.get(type(value))
    return Literal(kind, bytes(value) if kind == "binary" else value) if kind else None
