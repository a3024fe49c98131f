"""The shape of a query: blocks, the relations that they read, and where each clause is.

Nouns only; `query.shape_reader` makes them from tokens. A span is a half-open range of token
indexes. Expressions are not understood here, save for the subqueries in them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

Span = tuple[int, int]
TABLE_CHANGES = "table_changes"


@dataclass
class TimeTravel:
    """`VERSION AS OF …` or `TIMESTAMP AS OF …`; `text` is the expression."""

    kind: str
    text: str


@dataclass
class Reference:
    """A table by name in a FROM clause.

    `start` and `end` are offsets in the text, time travel included; `alias_at` is where an alias
    can be added (after TABLESAMPLE). `renamed`: the alias has a column list. `span_of_changes` are
    the texts of where `table_changes` starts and ends, None for a plain name.
    """

    parts: tuple[str, ...]
    span: Span
    start: int
    end: int
    alias_at: int
    travel: TimeTravel | None = None
    alias: str | None = None
    renamed: bool = False
    sampled: bool = False
    span_of_changes: tuple[str, ...] | None = None

    @property
    def visible_name(self) -> str:
        """What qualifies its columns."""
        return self.alias or (TABLE_CHANGES if self.span_of_changes is not None else self.parts[-1])


@dataclass
class CteReference:
    """A common table expression in a FROM clause."""

    cte: Cte
    alias: str | None
    renamed: bool = False

    @property
    def visible_name(self) -> str:
        """What qualifies its columns."""
        return self.alias or self.cte.name


@dataclass
class Derived:
    """A subquery in a FROM clause."""

    query: QueryShape
    alias: str | None
    renamed: bool = False
    lateral: bool = False
    sampled: bool = False


@dataclass
class Opaque:
    """A function or VALUES in a FROM clause: what it yields is Spark's to know."""

    alias: str | None
    nested: list[QueryShape] = field(default_factory=list)


@dataclass
class HiddenRelation:
    """A join in brackets with an alias of its own, or under PIVOT: names inside do not show."""

    relation: Relation


@dataclass
class Join:
    """Two relations joined; `kind` is inner, left, right, full, semi, anti."""

    kind: str
    left: Relation
    right: Relation
    on: Span | None = None
    using: tuple[str, ...] = ()
    natural: bool = False


Relation = Reference | CteReference | Derived | Opaque | HiddenRelation | Join


@dataclass
class Cte:
    """One common table expression; `uses` counts the references to it."""

    name: str
    query: QueryShape
    renamed: bool = False
    uses: int = 0


@dataclass
class QueryBlock:
    """One SELECT (or VALUES, TABLE): its relations and the spans of its clauses.

    `clauses` has select, where, group, having, window… by name.
    """

    span: Span = (0, 0)
    kind: str = "select"
    relations: list[Relation] = field(default_factory=list)
    clauses: dict[str, Span] = field(default_factory=dict)
    nested: list[QueryShape] = field(default_factory=list)
    distinct: bool = False
    hinted: bool = False
    lateral_views: bool = False
    pivoted: bool = False


@dataclass
class QueryShape:
    """Blocks under set operations, with common table expressions and a tail (ORDER BY, LIMIT)."""

    ctes: list[Cte] = field(default_factory=list)
    operands: list[QueryBlock | QueryShape] = field(default_factory=list)
    set_operations: list[str] = field(default_factory=list)
    tail: dict[str, Span] = field(default_factory=dict)
    nested: list[QueryShape] = field(default_factory=list)
    exists: bool = False

    @property
    def only_block(self) -> QueryBlock | None:
        """The block of a query that is one SELECT."""
        only = self.operands[0] if len(self.operands) == 1 else None
        return only if isinstance(only, QueryBlock) else None


def subqueries(relation: Relation) -> Iterator[QueryShape]:
    """Yield the queries directly below a relation."""
    for leaf in leaves_of(relation):
        if isinstance(leaf, Derived):
            yield leaf.query
        elif isinstance(leaf, Opaque):
            yield from leaf.nested


def queries(query: QueryShape) -> Iterator[QueryShape]:
    """Yield a query and every query in it, outer ones first."""
    yield query
    below = [cte.query for cte in query.ctes] + query.nested
    for operand in query.operands:
        if isinstance(operand, QueryShape):
            below.append(operand)
        else:
            below += operand.nested
            for relation in operand.relations:
                below += subqueries(relation)
    for found in below:
        yield from queries(found)


def blocks(query: QueryShape) -> Iterator[QueryBlock]:
    """Yield every block, outer ones first."""
    for found in queries(query):
        for operand in found.operands:
            if isinstance(operand, QueryBlock):
                yield operand


def leaves_of(relation: Relation) -> Iterator[Relation]:
    """Yield the relations joined in a relation, hidden ones included."""
    below = [relation]  # not by recursion: joins in a row nest to the left
    while below:
        found = below.pop()
        if isinstance(found, Join):
            below += [found.right, found.left]
        elif isinstance(found, HiddenRelation):
            below.append(found.relation)
        else:
            yield found


def references_in(block: QueryBlock) -> Iterator[Reference]:
    """Yield the tables by name in a block's own FROM clause."""
    for relation in block.relations:
        for leaf in leaves_of(relation):
            if isinstance(leaf, Reference):
                yield leaf
