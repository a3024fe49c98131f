"""Which condition of a block may leave out rows of which of its tables, and name resolution.

A condition of WHERE holds for the rows that come out of all joins of its block; one of ON for
the rows of one join. A table's rows may be left out beforehand where the condition is about that
table alone, and where the joins between let no row through that lost its partner: on the side
that an outer join fills with nulls, a condition that nulls satisfy stays where it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rowlake.conditions.column_lookup import find_column
from rowlake.model.predicate import And, Leaf, Op, Predicate
from rowlake.query.shape import (
    Block,
    CteReference,
    Derived,
    Hidden,
    Join,
    Opaque,
    Reference,
    Relation,
    Span,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.conditions.comparisons import Column
    from rowlake.model.schema import Schema
    from rowlake.sqltext.names import Names


@dataclass(frozen=True)
class Condition:
    """A clause that bears on a table: its span, what is in scope, whether nulls must fail it."""

    span: Span
    scope: tuple[Relation, ...]
    must_reject_nulls: bool


@dataclass(frozen=True)
class Scope:
    """What a clause can name: the relations, and columns that joins merged."""

    relations: tuple[Relation, ...]
    merged: frozenset[str] = frozenset()
    natural: bool = False
    schemas: dict[int, Schema] = field(default_factory=dict)


def conditions_on(target: Relation, block: Block) -> Iterator[Condition]:
    """Yield the clauses of a block whose truth a row of this relation needs, to matter."""
    if getattr(target, "sampled", False) or getattr(target, "renamed", False):
        return
    for relation in block.relations:
        path = _path_to(target, relation)
        if path is None:
            continue
        yield from _join_conditions(path)
        visible, fills = _seen_from_above(path)
        if visible and "where" in block.clauses and not block.pivoted:
            leaves = tuple(leaf for root in block.relations for leaf in visible_leaves(root))
            yield Condition(block.clauses["where"], leaves, fills)


Step = tuple[Relation, str]


def is_filled(target: Relation, block: Block) -> bool | None:
    """Return whether a join of the block may null the columns of a relation; None: out of sight."""
    if getattr(target, "sampled", False) or getattr(target, "renamed", False):
        return None
    for relation in block.relations:
        path = _path_to(target, relation)
        if path is not None:
            visible, fills = _seen_from_above(path)
            return fills if visible else None
    return None


def _path_to(reference: Relation, relation: Relation) -> list[Step] | None:
    """Return the steps from a relation down to another: (join, side), (hidden, '')."""
    above: dict[int, Step] = {}
    below = [relation]
    while below:
        found = below.pop()
        if found is reference:
            return _steps(found, above)
        children = {"": found.relation} if isinstance(found, Hidden) else {}
        if isinstance(found, Join):
            children = {"left": found.left, "right": found.right}
        for side, child in children.items():
            above[id(child)] = (found, side)
            below.append(child)
    return None


def _steps(relation: Relation, above: dict[int, Step]) -> list[Step]:
    """Return the steps down to a relation, given the one above each."""
    steps: list[Step] = []
    while id(relation) in above:
        steps.append(above[id(relation)])
        relation = steps[-1][0]
    return steps[::-1]


def _join_conditions(path: list[Step]) -> Iterator[Condition]:
    for index, (relation, side) in enumerate(path):
        if not isinstance(relation, Join) or relation.on is None:
            continue
        if side not in _FILTERED_SIDES[relation.kind]:
            continue
        visible, fills = _seen_from_above(path[index + 1 :])
        if visible:
            both = (*visible_leaves(relation.left), *visible_leaves(relation.right))
            yield Condition(relation.on, both, fills)


# Sides whose rows must satisfy ON to matter at all.
_FILTERED_SIDES = {
    "inner": ("left", "right"),
    "left": ("right",),
    "right": ("left",),
    "full": (),
    "semi": ("left", "right"),
    "anti": ("right",),
}
# Sides that a join fills with nulls where there is no partner.
_FILLED_SIDES = {"left": ("right",), "right": ("left",), "full": ("left", "right")}


def _seen_from_above(path: list[Step]) -> tuple[bool, bool]:
    """Return whether a table's columns show above a path, and whether a join may null them."""
    fills = False
    for relation, side in path:
        if isinstance(relation, Hidden):
            return False, fills
        if isinstance(relation, Join):
            if relation.kind in ("semi", "anti") and side == "right":
                return False, fills
            fills = fills or side in _FILLED_SIDES.get(relation.kind, ())
    return True, fills


def visible_leaves(relation: Relation) -> Iterator[Relation]:
    """Yield the relations whose columns show: not those of brackets with an alias."""
    below = [relation]
    while below:
        found = below.pop()
        if not isinstance(found, Join):
            yield found
            continue
        below += [] if found.kind in ("semi", "anti") else [found.right]
        below.append(found.left)


def joins_of(relation: Relation) -> Iterator[Join]:
    """Yield every join in a relation."""
    below = [relation]
    while below:
        found = below.pop()
        if isinstance(found, Join):
            yield found
            below += [found.right, found.left]
        elif isinstance(found, Hidden):
            below.append(found.relation)


def merged_columns(block: Block) -> tuple[frozenset[str], bool]:
    """Return the names that USING merges, in lower case, and whether a join is NATURAL."""
    joins = [join for relation in block.relations for join in joins_of(relation)]
    names = frozenset(name.lower() for join in joins for name in join.using)
    return names, any(join.natural for join in joins)


def visible_name(relation: Relation) -> str | None:
    """Return what qualifies the columns of a relation."""
    if isinstance(relation, (Reference, CteReference)):
        return relation.visible_name
    return relation.alias if isinstance(relation, (Derived, Opaque)) else None


class Resolver:
    """Resolves names in a clause to the columns of one table; None where not surely its own."""

    def __init__(self, target: Relation, schema: Schema, scope: Scope, names: Names) -> None:
        self.target, self.schema, self.scope, self.names = target, schema, scope, names

    def __call__(self, parts: tuple[str, ...]) -> Column | None:
        """Return the column that a dotted name means."""
        own = visible_name(self.target)
        qualified = [r for r in self.scope.relations if self._is_called(r, parts[0])]
        if len(parts) > 1 and qualified:
            if qualified != [self.target] or own is None:
                return None
            return self.find(parts[1:])
        full = self.target.parts if isinstance(self.target, Reference) else ()
        if 1 < len(full) < len(parts) and not self._has_alias():
            given, rest = parts[: len(full)], parts[len(full) :]
            if self.names.same_parts(given, full):
                return self.find(rest)
        return self._unqualified(parts)

    def _has_alias(self) -> bool:
        return isinstance(self.target, Reference) and self.target.alias is not None

    def _is_called(self, relation: Relation, name: str) -> bool:
        visible = visible_name(relation)
        return visible is not None and self.names.same(visible, name)

    def _unqualified(self, parts: tuple[str, ...]) -> Column | None:
        if self.scope.natural or parts[0].lower() in self.scope.merged:
            return None
        for relation in self.scope.relations:
            schema = self.scope.schemas.get(id(relation))
            if relation is self.target or schema is None:
                continue
            if self.names.matching(list(schema.arrow), parts[0]):
                return None
        return self.find(parts)

    def find(self, path: tuple[str, ...]) -> Column | None:
        """Return a column of the table by its path alone."""
        return find_column(self.schema, path, self.names)


def rejects_nulls(predicate: Predicate) -> bool:
    """Return True where a row of nulls does not satisfy the predicate."""
    return not _holds_for_nulls(predicate)


def _holds_for_nulls(predicate: Predicate) -> bool:
    if isinstance(predicate, Leaf):
        return predicate.op in (Op.IS_NULL, Op.NOT_NAN)
    combine = all if isinstance(predicate, And) else any
    return combine(map(_holds_for_nulls, predicate.parts))
