"""Predicates over a table's columns, as pruning and file filters need them.

A predicate selects the rows for which it is TRUE (SQL's three values: NULL selects nothing).
Negation is pushed to the leaves when a predicate is made, so no consumer meets a Not: that is
sound in three-valued logic (De Morgan holds) and keeps "may match" and "must match" readings
simple. What a leaf cannot express is not here: callers push what they can and keep the rest.

Comparisons mean Spark's: NaN equals NaN and is larger than any number, -0.0 equals 0.0.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Op(enum.Enum):
    """What a leaf tests of its column."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    IN = "in"
    NOT_IN = "not in"
    IS_NULL = "is null"
    NOT_NULL = "is not null"
    IS_NAN = "is nan"
    NOT_NAN = "is not nan"
    STARTS_WITH = "starts with"
    NOT_STARTS_WITH = "not starts with"


NEGATED = {
    Op.EQ: Op.NE,
    Op.LT: Op.GE,
    Op.LE: Op.GT,
    Op.IN: Op.NOT_IN,
    Op.IS_NULL: Op.NOT_NULL,
    Op.IS_NAN: Op.NOT_NAN,
    Op.STARTS_WITH: Op.NOT_STARTS_WITH,
}
NEGATED |= {negated: op for op, negated in NEGATED.items()}


@dataclass(frozen=True)
class Leaf:
    """One test of one column.

    `path` names the column (nested: one name per level); `field_id` is set once bound.
    `values` are Python values of the column's type (`datetime`, `Decimal`, `bytes`, …; a naive
    `datetime` for timestamps without zone, an aware one in UTC for those with); empty for the
    unary ops, one for comparisons, any number for IN. They never hold None.
    """

    path: tuple[str, ...]
    op: Op
    values: tuple[Any, ...] = ()
    field_id: int | None = None

    @property
    def value(self) -> Any:
        """The one value of a comparison."""
        (only,) = self.values
        return only


@dataclass(frozen=True)
class And:
    """All parts hold; of no parts: always true."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or:
    """At least one part holds; of no parts: always false."""

    parts: tuple[Predicate, ...]


Predicate: TypeAlias = And | Or | Leaf

TRUE = And(())
FALSE = Or(())


def conjunction(*parts: Predicate) -> Predicate:
    """Return the AND of the parts, flattened; FALSE swallows all."""
    flat: list[Predicate] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, And) else [part])
    if FALSE in flat:
        return FALSE
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def disjunction(*parts: Predicate) -> Predicate:
    """Return the OR of the parts, flattened; TRUE swallows all."""
    flat: list[Predicate] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Or) else [part])
    if TRUE in flat:
        return TRUE
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def negation(predicate: Predicate) -> Predicate:
    """Return the predicate that is TRUE exactly where this one is FALSE (NULL stays NULL)."""
    if isinstance(predicate, And):
        return disjunction(*map(negation, predicate.parts))
    if isinstance(predicate, Or):
        return conjunction(*map(negation, predicate.parts))
    return replace(predicate, op=NEGATED[predicate.op])


def leaves(predicate: Predicate) -> Iterator[Leaf]:
    """Yield every leaf."""
    if isinstance(predicate, Leaf):
        yield predicate
        return
    for part in predicate.parts:
        yield from leaves(part)


def map_leaves(predicate: Predicate, change: Callable[[Leaf], Predicate]) -> Predicate:
    """Return the predicate with every leaf replaced by what `change` makes of it."""
    if isinstance(predicate, Leaf):
        return change(predicate)
    combine = conjunction if isinstance(predicate, And) else disjunction
    return combine(*(map_leaves(part, change) for part in predicate.parts))
