"""A column compared with literals, as a predicate that means the same to any evaluator.

Comes in: a column's Arrow field, a comparison, literals. Goes out: a predicate whose values are
of the column's own type, TRUE for exactly the rows for which Spark's comparison is TRUE, or None
where that is not certain (Spark would cast the column, the session decides, …). The rules are
those of Spark's type coercion, so far as both its ANSI and its older rules agree.
"""

from __future__ import annotations

import decimal
import math
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rowlake.model.predicate import FALSE, Leaf, Op, Predicate
from rowlake.model.schema import type_name
from rowlake.sqltext.literals import Literal, instant, parse_moment

_DOUBLE_EXACT = 1 << 53
_FLOAT_EXACT = 1 << 24
_WIDE = decimal.Context(prec=100)


@dataclass(frozen=True)
class ComparedColumn:
    """A resolved column: its path in the table's own spelling, and its field.

    With a `transform`, what it makes of the column, and the field is that of the result.
    """

    path: tuple[str, ...]
    field: pa.Field
    zone: str | None = None
    transform: str | None = None

    def leaf(self, op: Op, *values: Any) -> Leaf:
        """Return a test of this column."""
        return Leaf(self.path, op, values, transform=self.transform)

    @property
    def not_null(self) -> Leaf:
        """TRUE where the column has a value."""
        return self.leaf(Op.NOT_NULL)

    @property
    def is_null(self) -> Leaf:
        """TRUE where it has none."""
        return self.leaf(Op.IS_NULL)


def compare(column: ComparedColumn, op: Op, literal: Literal) -> Predicate | None:
    """Return `column op literal` for EQ, NE, LT, LE, GT, GE."""
    if literal.kind == "null":
        return FALSE
    rule = _rule(column.field)
    return rule(column, op, literal) if rule else None


Rule = Callable[[ComparedColumn, Op, Literal], "Predicate | None"]


def _rule(field: pa.Field) -> Rule | None:
    kind, name = field.type, type_name(field)
    if name is not None:
        return _uuids if name == "uuid" else None
    for is_type, rule in _RULES:
        if is_type(kind):
            return rule
    return None


# --- numbers


def _integers(column: ComparedColumn, op: Op, literal: Literal) -> Predicate | None:
    if literal.kind in ("float", "double") and not _is_exact(literal.value, _DOUBLE_EXACT):
        return None
    if literal.kind not in ("integer", "decimal", "float", "double"):
        return None
    if literal.kind == "decimal" and not _fits_beside_long(literal.value):
        return None
    bits = column.field.type.bit_width
    limits = decimal.Decimal(-(1 << bits - 1)), decimal.Decimal((1 << bits - 1) - 1)
    return _on_grid(column, op, decimal.Decimal(literal.value), limits, 0, int)


def _fits_beside_long(value: decimal.Decimal) -> bool:
    """Return True where Spark's common type of this decimal and a long keeps all digits of both."""
    digits, exponent = len(value.as_tuple().digits), int(value.as_tuple().exponent)
    return max(20, digits + exponent) + max(0, -exponent) <= 38


def _decimals(column: ComparedColumn, op: Op, literal: Literal) -> Predicate | None:
    if literal.kind not in ("integer", "decimal"):
        return None
    value = decimal.Decimal(literal.value)
    precision, scale = column.field.type.precision, column.field.type.scale
    digits, exponent = len(value.as_tuple().digits), int(value.as_tuple().exponent)
    whole = max(precision - scale, digits + exponent, 20 if literal.kind == "integer" else 0)
    if whole + max(scale, -exponent, 0) > 38:
        return None
    top = _WIDE.scaleb(decimal.Decimal(10**precision - 1), -scale)
    return _on_grid(column, op, value, (-top, top), scale, lambda found: found)


def _on_grid(
    column: ComparedColumn,
    op: Op,
    value: decimal.Decimal,
    limits: tuple[decimal.Decimal, decimal.Decimal],
    scale: int,
    finish: Callable[[decimal.Decimal], Any],
) -> Predicate:
    """Compare with the multiples of 10^-scale within limits, which are all the column holds."""
    low, high = limits
    if value < low:
        return column.not_null if op in (Op.GT, Op.GE, Op.NE) else FALSE
    if value > high:
        return column.not_null if op in (Op.LT, Op.LE, Op.NE) else FALSE
    quantum = decimal.Decimal(1).scaleb(-scale)
    floor = value.quantize(quantum, rounding=decimal.ROUND_FLOOR, context=_WIDE)
    if floor == value:
        return column.leaf(op, finish(floor))
    if op in (Op.EQ, Op.NE):
        return column.not_null if op is Op.NE else FALSE
    return column.leaf(Op.LE if op in (Op.LT, Op.LE) else Op.GT, finish(floor))


def _is_exact(value: float, limit: int) -> bool:
    return math.isfinite(value) and abs(value) < limit


def _doubles(column: ComparedColumn, op: Op, literal: Literal) -> Predicate | None:
    if literal.kind not in ("integer", "decimal", "float", "double"):
        return None
    value = _as_float32(literal.value) if literal.kind == "float" else float(literal.value)
    return None if value is None or not math.isfinite(value) else column.leaf(op, value)


def _floats(column: ComparedColumn, op: Op, literal: Literal) -> Predicate | None:
    """Compare a float column as doubles: its values are the floats around the literal."""
    if literal.kind == "integer" and not _is_exact(literal.value, _FLOAT_EXACT):
        return None
    if literal.kind not in ("integer", "decimal", "float", "double"):
        return None
    nearest = _as_float32(literal.value)
    if nearest is None:
        return None
    value = nearest if literal.kind == "float" else float(literal.value)
    if nearest == value:
        return column.leaf(op, nearest)
    if op in (Op.EQ, Op.NE):
        return column.not_null if op is Op.NE else FALSE
    below = nearest < value
    if op in (Op.LT, Op.LE):
        return column.leaf(Op.LE if below else Op.LT, nearest)
    return column.leaf(Op.GT if below else Op.GE, nearest)


def _as_float32(value: Any) -> float | None:
    try:
        found: float = struct.unpack("<f", struct.pack("<f", float(value)))[0]
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


# --- the rest


def _booleans(column: ComparedColumn, op: Op, literal: Literal) -> Predicate | None:
    return column.leaf(op, literal.value) if literal.kind == "boolean" else None


def _strings(column: ComparedColumn, op: Op, literal: Literal) -> Predicate | None:
    return column.leaf(op, literal.value) if literal.kind == "string" else None


def _binaries(column: ComparedColumn, op: Op, literal: Literal) -> Predicate | None:
    if literal.kind != "binary":
        return None
    kind = column.field.type
    if pa.types.is_fixed_size_binary(kind) and len(literal.value) != kind.byte_width:
        return None
    return column.leaf(op, literal.value)


def _uuids(column: ComparedColumn, op: Op, literal: Literal) -> Predicate | None:
    """Spark sees a uuid as its lower-case text, which sorts as the bytes do."""
    if literal.kind != "string":
        return None
    try:
        found = uuid.UUID(literal.value)
    except ValueError:
        return None
    return column.leaf(op, found.bytes) if str(found) == literal.value else None


def _dates(column: ComparedColumn, op: Op, literal: Literal) -> Predicate | None:
    if literal.kind == "date":
        return column.leaf(op, literal.value)
    if literal.kind == "string" and len(literal.value) == 10:
        moment = parse_moment(literal.value)
        return column.leaf(op, moment.date()) if moment else None
    return None


def _timestamps(column: ComparedColumn, op: Op, literal: Literal) -> Predicate | None:
    if column.field.type.unit != "us":
        return None
    moment = literal.value
    if literal.kind == "string":
        moment = parse_moment(literal.value)
    elif literal.kind == "date":
        moment = parse_moment(literal.value.isoformat())
    elif literal.kind not in ("timestamp", "timestamp_ntz"):
        return None
    if moment is None:
        return None
    if column.field.type.tz is None:
        return _local_times(column, op, literal, moment)
    found = instant(moment, column.zone)
    return column.leaf(op, found) if found else None


def _local_times(column: ComparedColumn, op: Op, literal: Literal, moment: Any) -> Predicate | None:
    """Compare a timestamp without zone; with an instant, Spark reads it in the session's zone."""
    if literal.kind != "timestamp":
        return column.leaf(op, moment) if moment.tzinfo is None else None
    if column.zone not in ("UTC", "Etc/UTC", "GMT", "Z"):
        return None
    found = instant(moment, column.zone)
    return column.leaf(op, found.replace(tzinfo=None)) if found else None


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_binary(kind: pa.DataType) -> bool:
    large = pa.types.is_large_binary(kind)
    return bool(pa.types.is_binary(kind) or large or pa.types.is_fixed_size_binary(kind))


_RULES: tuple[tuple[Callable[[pa.DataType], bool], Rule], ...] = (
    (pa.types.is_integer, _integers),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_float32, _floats),
    (pa.types.is_float64, _doubles),
    (pa.types.is_boolean, _booleans),
    (_is_string, _strings),
    (_is_binary, _binaries),
    (pa.types.is_date, _dates),
    (pa.types.is_timestamp, _timestamps),
)


def is_text(column: ComparedColumn) -> bool:
    """Return True for a string column as Spark and the files both see it."""
    return type_name(column.field) is None and _is_string(column.field.type)


def is_floating(column: ComparedColumn) -> bool:
    """Return True for a float or double column."""
    return bool(pa.types.is_floating(column.field.type))


def is_boolean(column: ComparedColumn) -> bool:
    """Return True for a boolean column."""
    return bool(pa.types.is_boolean(column.field.type))
