"""Which columns of a table a statement can need: all that it names, or all.

The whole statement is read as a set of names: a column that no part of it names, where no star,
NATURAL join, PIVOT or the like can mean it, is not needed. That is coarser than resolving every
name, and cannot be wrong for a form of expression that is not understood.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rowlake.model.task import (
    DELETED_COLUMN,
    FILE_COLUMN,
    LAST_UPDATED_COLUMN,
    PARTITION_COLUMN,
    POS_COLUMN,
    ROW_ID_COLUMN,
    SPEC_ID_COLUMN,
)
from rowlake.query.scope import merged_columns, visible_name
from rowlake.query.shape import (
    Block,
    Query,
    Reference,
    Span,
    blocks,
    leaves_of,
    queries,
    references_in,
)
from rowlake.sqltext.lexer import Kind, Token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rowlake.model.schema import Schema

METADATA_COLUMNS = (
    FILE_COLUMN,
    POS_COLUMN,
    PARTITION_COLUMN,
    SPEC_ID_COLUMN,
    DELETED_COLUMN,
    ROW_ID_COLUMN,
    LAST_UPDATED_COLUMN,
)


@dataclass
class Mentions:
    """What a statement names: dotted names in lower case, and stars, with their token indexes."""

    names: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    stars: list[int] = field(default_factory=list)

    def within(self, spans: list[Span]) -> Mentions:
        """Return what is named in some spans."""
        names = [self.names[_between(self.names, span, itemgetter(0))] for span in spans]
        stars = [self.stars[_between(self.stars, span, int)] for span in spans]
        return Mentions([*chain(*names)], [*chain(*stars)])


def _between(found: list[Any], span: Span, index: Callable[[Any], int]) -> slice:
    """Return where those of a span are in a list that is sorted by index."""
    first, last = (bisect_left(found, edge, key=index) for edge in span)
    return slice(first, last)


def mentions_in(tokens: list[Token], references: list[Reference]) -> Mentions:
    """Return what the tokens name, outside of the references themselves."""
    skipped = {index for found in references for index in range(*found.span)}
    found = Mentions()
    index = 0
    while index < len(tokens):
        if index not in skipped and tokens[index].is_name:
            start = index
            parts, index = dotted_at(tokens, index)
            found.names.append((start, tuple(part.lower() for part in parts)))
            continue
        if index not in skipped and _is_star(tokens, index):
            found.stars.append(index)
        index += 1
    return found


def dotted_at(tokens: list[Token], index: int) -> tuple[list[str], int]:
    """Return the parts of a dotted name (a last `*` included) and the index after it."""
    parts = [tokens[index].value]
    while tokens[index + 1].text == "." and index + 2 < len(tokens):
        after = tokens[index + 2]
        if not after.is_name and after.text != "*":
            break
        parts.append(after.value)
        index += 2
    return parts, index + 1


def _is_star(tokens: list[Token], index: int) -> bool:
    """Return True for a `*` that means columns: not a product, not count(*)."""
    if tokens[index].text != "*" or tokens[index].kind is not Kind.SYMBOL:
        return False
    before = tokens[index - 1] if index else None
    if before is None or before.word in ("SELECT", "DISTINCT", "ALL"):
        return True
    if before.text == "(":
        return not (index > 1 and tokens[index - 2].word == "COUNT")
    return before.text in (",", "*/")


def innermost(query: Query, indexes: Iterable[int]) -> dict[int, Block | None]:
    """Return the smallest block around each of some tokens."""
    waiting = sorted(blocks(query), key=lambda block: (-block.span[0], block.span[1]))
    around: list[Block] = []
    found: dict[int, Block | None] = {}
    for index in sorted(indexes):
        while waiting and waiting[-1].span[0] <= index:
            around.append(waiting.pop())
        while around and around[-1].span[1] <= index:
            around.pop()
        found[index] = around[-1] if around else None
    return found


def fully_read(query: Query, mentions: Mentions) -> set[int]:
    """Return the ids of references whose columns all count: stars, NATURAL, PIVOT, TABLE t."""
    found = [b for b in blocks(query) if b.kind == "table" or b.pivoted or merged_columns(b)[1]]
    existing = {id(only) for q in queries(query) if q.exists and (only := q.only_block)}
    for inner in innermost(query, mentions.stars).values():
        if inner is None:
            found = list(blocks(query))
            break
        if id(inner) not in existing:
            found.append(inner)
    return {id(reference) for block in found for reference in references_in(block)}


def reach_of(query: Query) -> dict[int, list[Span]]:
    """Return where the columns of each reference can be named: its block, and ORDER BY around."""
    found: dict[int, list[Span]] = {}

    def visit(inside: Query, tails: list[Span]) -> None:
        tails = [*tails, *inside.tail.values()]
        for operand in inside.operands:
            if isinstance(operand, Query):
                visit(operand, tails)
            else:
                for reference in references_in(operand):
                    found.setdefault(id(reference), [operand.span, *tails])

    for each in queries(query):
        visit(each, [])
    return found


def aliases_in(query: Query) -> set[str]:
    """Return what qualifies columns anywhere in the query, in lower case."""
    found = set[str]()
    for block in blocks(query):
        for relation in block.relations:
            names = (visible_name(leaf) for leaf in leaves_of(relation))
            found |= {name.lower() for name in names if name}
    return found


def needed_columns(
    reference: Reference,
    schema: Schema,
    mentions: Mentions,
    aliases: set[str],
    *,
    everything: bool,
) -> tuple[str, ...] | None:
    """Return the columns to read, in the table's order, metadata columns last; None for all."""
    named = set[str]()
    for _, parts in mentions.names:
        found = _meant(parts, reference, aliases)
        everything = everything or "*" in found
        named |= found
    known = {column.name.lower() for column in schema.arrow}
    everything = everything or reference.renamed
    metadata = tuple(n for n in METADATA_COLUMNS if n in named and n not in known)
    if everything and not metadata:
        return None
    columns = tuple(c.name for c in schema.arrow if everything or c.name.lower() in named)
    return columns + metadata


def _meant(parts: tuple[str, ...], reference: Reference, aliases: set[str]) -> set[str]:
    """Return the columns of a table that a dotted name may mean; `*` for all."""
    full = tuple(part.lower() for part in reference.parts)
    if reference.alias is None and parts[: len(full)] == full and len(parts) > len(full):
        return {parts[len(full)], parts[0]}
    if len(parts) == 1:
        return {parts[0]}
    if parts[0] == reference.visible_name.lower() or parts[0] not in aliases:
        return {parts[0], parts[1]}
    return {parts[0]}
