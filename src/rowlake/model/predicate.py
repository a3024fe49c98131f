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
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


Result = TypeVar("Result")


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
    With a `transform` (`bucket[16]`, `day`, …) the test is of what it makes of the column, and
    `values` are of its type.
    """

    path: tuple[str, ...]
    op: Op
    values: tuple[Any, ...] = ()
    field_id: int | None = None
    transform: str | None = None

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

# ANDs and ORs inside one another that planning follows, and that tasks can be sent.
MAX_NESTING = 60


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

    def combined(found: And | Or, parts: list[Predicate]) -> Predicate:
        return (disjunction if isinstance(found, And) else conjunction)(*parts)

    return fold(predicate, lambda leaf: replace(leaf, op=NEGATED[leaf.op]), combined)


def leaves(predicate: Predicate) -> Iterator[Leaf]:
    """Yield every leaf."""
    below = [predicate]
    while below:
        found = below.pop()
        if isinstance(found, Leaf):
            yield found
        else:
            below += reversed(found.parts)


def map_leaves(predicate: Predicate, change: Callable[[Leaf], Predicate]) -> Predicate:
    """Return the predicate with every leaf replaced by what `change` makes of it."""

    def combined(found: And | Or, parts: list[Predicate]) -> Predicate:
        return (conjunction if isinstance(found, And) else disjunction)(*parts)

    return fold(predicate, change, combined)


def nesting(predicate: Predicate) -> int:
    """Return how many ANDs and ORs are inside one another."""
    return fold(predicate, lambda _: 0, lambda _, parts: 1 + max(parts, default=0))


def fold(
    predicate: Predicate,
    of_leaf: Callable[[Leaf], Result],
    of_parts: Callable[[And | Or, list[Result]], Result],
) -> Result:
    """Return what functions make of the leaves, then of each AND and OR of what its parts gave.

    An AND in an AND (or an OR in an OR) is seen as one with it. Not by recursion: chains that
    callers build one by one may be deeper than Python's stack.
    """
    outermost: list[Result] = []
    waiting: list[tuple[Predicate, list[Result], list[Result] | None]] = []
    waiting.append((predicate, outermost, None))
    while waiting:
        found, target, parts = waiting.pop()
        if isinstance(found, Leaf):
            target.append(of_leaf(found))
        elif parts is None:
            made: list[Result] = []
            waiting.append((found, target, made))
            waiting += [(part, made, None) for part in reversed(_flat_parts(found))]
        else:
            target.append(of_parts(found, parts))
    return outermost[0]


def _flat_parts(predicate: And | Or) -> list[Predicate]:
    """Return the parts, with those of parts of the same kind in their place."""
    found: list[Predicate] = []
    below: list[Predicate] = [predicate]
    while below:
        part = below.pop()
        if isinstance(part, type(predicate)):
            below += reversed(part.parts)
        else:
            found.append(part)
    return found
