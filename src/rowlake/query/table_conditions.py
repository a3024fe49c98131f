"""All conditions that bear on a table: of its own block, and of the blocks around it.

A condition on a subquery in FROM, or on a common table expression that is used once, is one on
the tables inside, where the column is passed on as it is and nothing in between (LIMIT, windows,
groups, …) would see other rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.conditions.token_groups import column_path, split_commas
from rowlake.model.schema import Schema
from rowlake.query.aggregates import without_alias
from rowlake.query.scope import (
    Resolver,
    Scope,
    conditions_on,
    is_filled,
    merged_columns,
    visible_leaves,
    visible_name,
)
from rowlake.query.shape import (
    Block,
    CteReference,
    Derived,
    Query,
    Relation,
    Span,
    blocks,
    leaves_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rowlake.conditions.comparisons import Column
    from rowlake.sqltext.lexer import Token
    from rowlake.sqltext.names import Names


@dataclass(frozen=True)
class Gathered:
    """A condition, how its names resolve to the table, and whether nulls must fail it."""

    span: Span
    resolve: Callable[[tuple[str, ...]], Column | None]
    must_reject_nulls: bool


class Gatherer:
    """Finds conditions in one query."""

    def __init__(
        self, query: Query, tokens: list[Token], schemas: dict[int, Schema], names: Names
    ) -> None:
        self.tokens, self.schemas, self.names = tokens, schemas, names
        self.sites = dict(_sites(query))

    def conditions(self, relation: Relation, block: Block, schema: Schema) -> Iterator[Gathered]:
        """Yield the conditions on a relation of a block, which has these columns."""
        merged, natural = merged_columns(block)
        for condition in conditions_on(relation, block):
            scope = Scope(condition.scope, merged, natural, self.schemas)
            resolver = Resolver(relation, schema, scope, self.names)
            yield Gathered(condition.span, resolver, condition.must_reject_nulls)
        site = self.sites.get(id(block))
        filled = is_filled(relation, block)
        if site is None or filled is None or not self._is_transparent(block):
            return
        outputs = self._outputs(block, relation, schema)
        shown = Schema(pa.schema([c.field.with_name(name) for name, c in outputs.items()]))
        for found in self.conditions(*site, shown):
            yield Gathered(
                found.span, _translated(found, outputs), found.must_reject_nulls or filled
            )

    def _is_transparent(self, block: Block) -> bool:
        """Return True where a row that comes out depends on no other row of the block."""
        words = {token.word for token in self.tokens[slice(*block.span)]}
        grouped = "group" in block.clauses or "having" in block.clauses
        return not (grouped or block.pivoted or block.kind != "select" or "OVER" in words)

    def _outputs(self, block: Block, relation: Relation, schema: Schema) -> dict[str, Column]:
        """Return the columns of a relation that a block passes on as they are, by name."""
        merged, natural = merged_columns(block)
        leaves = tuple(leaf for root in block.relations for leaf in visible_leaves(root))
        resolve = Resolver(
            relation, schema, Scope(leaves, merged, natural, self.schemas), self.names
        )
        found: list[tuple[str, Column | None]] = []
        for item in split_commas(self.tokens[slice(*block.clauses["select"])]):
            found += self._passed(item, block, relation, schema, resolve)
        lowered = [name.lower() for name, _ in found]
        return {
            name: column
            for name, column in found
            if column is not None and lowered.count(name.lower()) == 1
        }

    def _passed(
        self,
        item: Sequence[Token],
        block: Block,
        relation: Relation,
        schema: Schema,
        resolve: Resolver,
    ) -> list[tuple[str, Column | None]]:
        if self._is_star_of(item, block, relation):
            return [(name, resolve.find((name,))) for name in schema.arrow.names]
        expression, alias = without_alias(item)
        path = column_path(expression)
        column = resolve(path) if path else None
        name = alias or (path[-1] if path else None)
        return [] if name is None else [(name, column)]

    def _is_star_of(self, item: Sequence[Token], block: Block, relation: Relation) -> bool:
        if len(item) == 1 and item[0].text == "*":
            return block.relations == [relation] and not block.lateral_views
        name = visible_name(relation)
        if len(item) == 3 and item[2].text == "*" and name is not None:
            return self.names.same(item[0].value, name)
        return False


def _translated(
    found: Gathered, outputs: dict[str, Column]
) -> Callable[[tuple[str, ...]], Column | None]:
    def resolve(parts: tuple[str, ...]) -> Column | None:
        column = found.resolve(parts)
        if column is None:
            return None
        inner = outputs[column.path[0]]
        return replace(column, path=(*inner.path, *column.path[1:]))

    return resolve


def _sites(query: Query) -> Iterator[tuple[int, tuple[Relation, Block]]]:
    """Yield where the rows of a block are read from: (id of the block, (relation, its block))."""
    for block in blocks(query):
        for root in block.relations:
            for relation in leaves_of(root):
                inner = _read_by(relation)
                only = inner.only_block if inner and set(inner.tail) <= {"order"} else None
                if only is not None:
                    yield id(only), (relation, block)


def _read_by(relation: Relation) -> Query | None:
    """Return the query whose rows a relation reads, alone and unchanged."""
    if isinstance(relation, Derived):
        return None if relation.renamed or relation.sampled else relation.query
    if isinstance(relation, CteReference):
        once = relation.cte.uses == 1 and not relation.renamed
        return relation.cte.query if once else None
    return None
