"""Conditions of a MERGE on both sides that need no join of Spark.

`t.changed_at < s.changed_at`: a column of the target compared with an expression of the source.
Spark evaluates the expression with the rest of the source; tasks compare. Only where both have one
type, and Arrow compares values of it as Spark does: not floating-point numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.conditions.token_groups import is_operand, operator_at
from rowlake.sqltext.lexer import TokenKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.dml.join_sides import Sides
    from rowlake.sqltext.lexer import Token

_OPERATORS = {
    "=": "=",
    "==": "=",
    "<>": "!=",
    "!=": "!=",
    "<=>": "<=>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EQUALITIES = ("=", "!=", "<=>")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_ORDERED = ("string", "date", "timestamp", "timestamp_ntz", "binary")


@dataclass(frozen=True)
class Compared:
    """A column of the target, an operator, a text of the source."""

    column: str
    operator: str
    text: str


def compared(whole: str, tokens: Sequence[Token], sides: Sides) -> Compared | None:
    """Return what a condition compares; None where it is anything else than that."""
    found = operands(whole, tokens)
    if found is None:
        return None
    left, operator, right = found
    turned = _TURNED.get(operator, operator)
    for one, other, way in ((left, right, operator), (right, left, turned)):
        column = sides.target_column(one)
        if column is None or sides.mentions_target(other) or not sides.mentions_source(other):
            continue
        return Compared(column, way, other)
    return None


def operands(whole: str, tokens: Sequence[Token]) -> tuple[str, str, str] | None:
    """Return the two sides of a comparison and its operator; None where it is none.

    Whatever binds less than a comparison (OR, NOT, IS …) must stand in brackets.
    """
    at = operator_at(tokens)
    if at is None or tokens[at].kind is not TokenKind.SYMBOL:
        return None
    left, right = tokens[:at], tokens[at + 1 :]
    if not is_operand(left) or not is_operand(right):
        return None
    texts = [whole[part[0].start : part[-1].end] for part in (left, right)]
    return texts[0], _OPERATORS[tokens[at].text], texts[1]


def is_comparable(operator: str, target: str, source: str) -> bool:
    """Return whether values of two types of Spark compare here as they do in Spark."""
    if target in _INTEGERS and source in _INTEGERS:
        return True
    if target != source:
        return False
    if target == "boolean":
        return operator in _EQUALITIES
    return target in _ORDERED or target.startswith("decimal(")
