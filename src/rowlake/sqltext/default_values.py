"""Default values of columns: literals of SQL to values of a column's type, and to JSON.

Comes in: the columns of a statement, or of a schema that is text. Goes out: values in the spec's
JSON single-value form (Appendix D). What is no literal needs Spark (`rowlake.sql`).
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import TYPE_CHECKING, Any

from rowlake.errors import InvalidStatementError
from rowlake.sqltext.lexer import Lexer
from rowlake.sqltext.literals import Literal, instant, literal_of, parse_moment
from rowlake.sqltext.types import Field, Primitive, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlake.sqltext.names import Name

ZONED = ("timestamptz", "timestamptz_ns")


def with_defaults(fields: tuple[Field, ...], above: Name = ()) -> Iterator[tuple[Name, Field]]:
    """Yield the fields that have a default, those inside of structs too, with their paths."""
    for field in fields:
        path = (*above, field.name)
        if field.default is not None:
            yield path, field
        if isinstance(field.type, Struct):
            yield from with_defaults(field.type.fields, path)


def literal_defaults(columns: tuple[Field, ...]) -> dict[Name, Any]:
    """Return the defaults that are literals, by path; times of no zone are left out, too."""
    found: dict[Name, Any] = {}
    for path, field in with_defaults(columns):
        literal = literal_in(field.default or "NULL", field.type)
        if literal is None:
            continue
        if literal.kind == "null":
            found[path] = None
        elif isinstance(field.type, Primitive) and field.type.name not in ZONED:
            value = coerced(literal, field.type.name, field.default or "NULL", None)
            found[path] = json_value(value, field.type)
    return found


def literal_in(text: str, kind: Type) -> Literal | None:
    """Return the literal that a default is, None where it is another expression."""
    literal = literal_of(Lexer(text).all()[:-1], {})
    if not isinstance(kind, Primitive) and (literal is None or literal.kind != "null"):
        raise InvalidStatementError(f"DEFAULT {text}: a nested column can only default to NULL.")
    return literal


def coerced(literal: Literal, name: str, text: str, zone: str | None) -> Any:
    """Return a literal as a value of a type; raises where it is none."""
    convert = _CONVERTERS.get(name.partition("(")[0].partition("[")[0])
    try:
        found = convert(literal.value, zone) if convert else None
    except (ValueError, TypeError, decimal.InvalidOperation, AttributeError):
        found = None
    if found is None:
        raise InvalidStatementError(f"DEFAULT {text} is not a value of type {name}.")
    if name.startswith("decimal"):
        scale = int(name.rstrip(")").partition(",")[2])
        return found.quantize(decimal.Decimal(1).scaleb(-scale))
    return found


def _boolean(value: Any, _: str | None) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(str(value).lower())


def _whole(value: Any, _: str | None) -> int:
    if isinstance(value, bool) or int(value) != decimal.Decimal(str(value)):
        raise ValueError(value)
    return int(value)


def _moment(value: Any, zone: str | None, *, zoned: bool) -> dt.datetime | None:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    found = parse_moment(value) if isinstance(value, str) else value
    if found is None or not zoned:
        return found if found is None or found.tzinfo is None else None
    return instant(found, zone)


def _day(value: Any, _: str | None) -> dt.date | None:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    return dt.date.fromisoformat(value) if isinstance(value, str) else None


def _bytes(value: Any, _: str | None) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


_CONVERTERS: dict[str, Callable[[Any, str | None], Any]] = {
    "boolean": _boolean,
    "int": _whole,
    "long": _whole,
    "float": lambda value, _: float(value),
    "double": lambda value, _: float(value),
    "decimal": lambda value, _: decimal.Decimal(str(value)),
    "string": lambda value, _: value if isinstance(value, str) else str(value),
    "uuid": lambda value, _: uuid.UUID(value),
    "date": _day,
    "time": lambda value, _: dt.time.fromisoformat(value),
    "timestamp": lambda value, zone: _moment(value, zone, zoned=False),
    "timestamp_ns": lambda value, zone: _moment(value, zone, zoned=False),
    "timestamptz": lambda value, zone: _moment(value, zone, zoned=True),
    "timestamptz_ns": lambda value, zone: _moment(value, zone, zoned=True),
    "binary": _bytes,
    "fixed": _bytes,
}


def json_value(value: Any, kind: Type) -> Any:
    """Return a value in the spec's JSON single-value form."""
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        nanos = "000" if isinstance(kind, Primitive) and kind.name.endswith("_ns") else ""
        return text + nanos + ("+00:00" if value.tzinfo else "")
    if isinstance(value, dt.time):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (dt.date, decimal.Decimal, uuid.UUID)):
        return str(value)
    return value
