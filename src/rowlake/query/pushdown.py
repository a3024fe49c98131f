"""A statement over lake tables to scans and a statement over their views.

Comes in: a statement's text and a look-up of lake tables. Goes out: for each reference to a lake
table what to read of it (columns, predicate, snapshot), and the text in which a view's name stands
in its place, otherwise as written. Promise: whatever Spark then evaluates on views that hold at
least the rows of the predicate and at least those columns is what the statement means.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from rowlake.conditions.reader import ConditionReader
from rowlake.conditions.token_groups import conjuncts
from rowlake.model.predicate import TRUE, Predicate, conjunction
from rowlake.query import needed_columns as columns_room
from rowlake.query.aggregates import Aggregation, NotSplit, Splitter
from rowlake.query.scope import rejects_nulls
from rowlake.query.shape import (
    QueryBlock,
    QueryShape,
    Reference,
    TimeTravel,
    blocks,
    queries,
    references_in,
)
from rowlake.query.shape_reader import ShapeReader
from rowlake.query.table_conditions import ConditionFinder
from rowlake.query.table_names import SchemaLookup, Target, locate, validate_known
from rowlake.query.token_reader import AFTER_RELATION, NotFollowed
from rowlake.sqltext.edits import Edit, spliced
from rowlake.sqltext.lexer import Lexer, Token, TokenKind, quote
from rowlake.sqltext.names import NameRules
from rowlake.sqltext.parameters import Arguments, arguments_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlake.model.schema import Schema


@dataclass(frozen=True)
class Scan:
    """One reference to a lake table: what to read, and the view that the text names instead.

    `columns` None: all; else names in the table's own spelling, metadata columns last (maybe
    none at all, as for count(*)). `predicate` may leave out rows for which it is not TRUE.
    With an `aggregation` the view holds partial aggregates, and neither of these counts.
    `span_of_changes` are the texts of where a change feed starts and ends.
    """

    view: str
    target: Target
    columns: tuple[str, ...] | None = None
    predicate: Predicate | None = None
    travel: TimeTravel | None = None
    aggregation: Aggregation | None = None
    span_of_changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RewrittenQuery:
    """The text over views, and the scans behind them."""

    text: str
    scans: tuple[Scan, ...] = ()


@dataclass(frozen=True)
class Options:
    """What a statement's meaning depends on besides its text.

    `aggregates`: split what can be split into partial aggregates.
    `schema_of` gives the schema of a time-travelled target; without it nothing of one is pushed.
    """

    names: NameRules = field(default_factory=NameRules)
    arguments: Arguments = None
    view_prefix: str = "__lake_"
    aggregates: bool = False
    schema_of: Callable[[Target, Reference], Schema | None] | None = None


def push_down(text: str, lookup: SchemaLookup, options: Options | None = None) -> RewrittenQuery:
    """Return the scans of a statement and its text over their views.

    The statement may be a query or hold one (EXPLAIN, INSERT INTO another table, …).
    """
    options = options or Options()
    lexer = Lexer(text)
    start = query_start(lexer.all())
    try:
        query = ShapeReader(lexer, start).whole() if start is not None else None
    except NotFollowed:
        query = None
    if query is None:
        return _unfollowed(lexer, lookup, options)
    found = _located(query, lookup)
    if not found:
        return RewrittenQuery(text)
    made = _Scans(query, lexer, found, options)
    scans = made.scans()
    text = rewritten(lexer, query, found, scans, made.edits)
    return RewrittenQuery(text, tuple(scans))


Found = list[tuple[Reference, Target]]


def query_start(tokens: list[Token]) -> int | None:
    """Return the index of the token at which the query in a statement starts."""
    if tokens[0].text == "(":
        return 0
    depth = 0
    for index, token in enumerate(tokens):
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text == "(") - (token.text == ")")
        elif depth == 0 and token.word in ("SELECT", "WITH", "FROM", "VALUES"):
            return index
        elif index == 0 and token.word == "TABLE":
            return 0
    return None


def _located(query: QueryShape, lookup: SchemaLookup) -> Found:
    found: Found = []
    for block in blocks(query):
        for reference in references_in(block):
            target = locate(reference.parts, lookup)
            if target is None:
                validate_known(reference.parts, lookup)
            else:
                found.append((reference, target))
    return sorted(found, key=lambda pair: pair[0].start)


class _Scans:
    """The scans of one query."""

    def __init__(self, query: QueryShape, lexer: Lexer, found: Found, options: Options) -> None:
        self.query, self.tokens, self.found, self.options = query, lexer.all(), found, options
        self.arguments = arguments_of(self.tokens, options.arguments)
        self.schemas = {id(r): s for r, t in found if (s := self._schema(r, t)) is not None}
        self.owners = {id(r): block for block in blocks(query) for r in references_in(block)}
        self.every = [r for block in blocks(query) for r in references_in(block)]
        self.queries = {id(one): q for q in queries(query) if (one := q.only_block) is not None}
        self.edits: list[Edit] = []
        self.finder = ConditionFinder(query, self.tokens, self.schemas, options.names)

    def _schema(self, reference: Reference, target: Target) -> Schema | None:
        if reference.travel is None and target.is_current:
            return target.schema
        if self.options.schema_of is None or (target.metadata_table and not target.is_feed):
            return None
        return self.options.schema_of(target, reference)

    def scans(self) -> list[Scan]:
        """Return one scan per reference, in the order of the text."""
        mentions = columns_room.mentions_in(self.tokens, self.every)
        everything = columns_room.fully_read(self.query, mentions)
        reach = columns_room.reach_of(self.query)
        aliases = columns_room.aliases_in(self.query)
        scans = []
        for number, (reference, target) in enumerate(self.found):
            schema = self.schemas.get(id(reference))
            needed, predicate = None, None
            if schema is not None:
                needed = columns_room.needed_columns(
                    reference,
                    schema,
                    mentions.within(reach[id(reference)]),
                    aliases,
                    everything=id(reference) in everything,
                )
                predicate = self.predicate(reference, schema)
            view = f"{self.options.view_prefix}{number}"
            plain = schema is not None and not target.is_feed
            split_up = self.aggregation(reference, schema) if plain and schema else None
            span = reference.span_of_changes or ()
            scans.append(Scan(view, target, needed, predicate, reference.travel, split_up, span))
        return scans

    def aggregation(self, reference: Reference, schema: Schema) -> Aggregation | None:
        """Return how the block of a reference is split into partial aggregates, if it is."""
        block = self.owners[id(reference)]
        if not self.options.aggregates or block.relations != [reference]:
            return None
        query = self.queries.get(id(block))
        splitter = Splitter(self.tokens, reference, schema, self.options.names, self.arguments)
        try:
            found, edits = splitter.split(block, query)
        except NotSplit:
            return None
        self.edits += edits
        return found

    def predicate(self, reference: Reference, schema: Schema) -> Predicate | None:
        """Return what the conditions around a reference say of its table."""
        block = self.owners[id(reference)]
        parts: list[Predicate] = []
        for condition in self.finder.conditions(reference, block, schema):
            reader = ConditionReader(condition.resolve, self.arguments)
            for part in conjuncts(self.tokens[slice(*condition.span)]):
                pushed = reader.read(part)
                if pushed is None:
                    continue
                if not condition.must_reject_nulls or rejects_nulls(pushed.predicate):
                    parts.append(pushed.predicate)
        predicate = conjunction(*parts) if parts else TRUE
        return None if predicate == TRUE else predicate


# --- the text


def rewritten(
    lexer: Lexer, query: QueryShape, found: Found, scans: list[Scan], more: list[Edit]
) -> str:
    """Return the text with views in the place of the tables."""
    edits = list(more)
    bare = {id(r) for b in blocks(query) if b.kind == "table" for r in references_in(b)}
    for (reference, _), scan in zip(found, scans, strict=True):
        edits.append((reference.start, reference.end, quote(scan.view)))
        if reference.alias is None and id(reference) not in bare:
            edits.append(
                (reference.alias_at, reference.alias_at, f" AS {quote(reference.visible_name)}")
            )
    edits += _shortened_names(lexer.all(), [reference for reference, _ in found])
    edits += _hidden_metadata(lexer.all(), query, found, scans)
    return spliced(lexer.text, edits)


def _shortened_names(tokens: list[Token], references: list[Reference]) -> list[Edit]:
    """`ns.t.column` to `t.column`, since the view's alias has one part."""
    plain = [r for r in references if r.alias is None and len(r.parts) > 1]
    names = {tuple(part.lower() for part in r.parts) for r in plain}
    sizes = sorted(set(map(len, names)))
    skipped = {index for r in references for index in range(*r.span)}
    edits: list[Edit] = []
    index = 0
    while plain and index < len(tokens):
        if index in skipped or not tokens[index].is_name:
            index += 1
            continue
        start = index
        parts, index = columns_room.dotted_at(tokens, index)
        lowered = tuple(part.lower() for part in parts)
        for size in sizes:
            if len(parts) > size and lowered[:size] in names:
                edits.append((tokens[start].start, tokens[start + 2 * (size - 1)].start, ""))
                break
    return edits


def _hidden_metadata(
    tokens: list[Token], query: QueryShape, found: Found, scans: list[Scan]
) -> list[Edit]:
    """Metadata columns that a statement names are in the view, but a star does not mean them."""
    mentions = columns_room.mentions_in(tokens, [reference for reference, _ in found])
    if not any(
        column in columns_room.METADATA_COLUMNS for s in scans for column in s.columns or ()
    ):
        return []
    edits: list[Edit] = []
    for star, block in columns_room.innermost(query, mentions.stars).items():
        hidden = _metadata_of(block, found, scans) if block else []
        if hidden:
            edits.append(_excepting(tokens, star, ", ".join(hidden)))
    return edits


def _excepting(tokens: list[Token], star: int, names: str) -> Edit:
    """Return the edit that leaves names out of a star, beside what it leaves out already."""
    if tokens[star + 1].word == "EXCEPT" and tokens[star + 2].text == "(":
        at = tokens[star + 2].end
        return at, at, f"{names}, "
    return tokens[star].end, tokens[star].end, f" EXCEPT ({names})"


def _metadata_of(block: QueryBlock, found: Found, scans: list[Scan]) -> list[str]:
    own = {id(reference) for reference in references_in(block)}
    return [
        f"{quote(reference.visible_name)}.{quote(column)}"
        for (reference, _), scan in zip(found, scans, strict=True)
        if id(reference) in own and scan.columns
        for column in scan.columns
        if column in columns_room.METADATA_COLUMNS
    ]


# --- statements that are not followed


def _unfollowed(lexer: Lexer, lookup: SchemaLookup, options: Options) -> RewrittenQuery:
    """Replace what follows FROM, JOIN and TABLE by name; read all of each."""
    tokens = lexer.all()
    edits: list[Edit] = []
    scans: list[Scan] = []
    for parts, first, after, aliased in table_names_in(tokens):
        target = locate(tuple(parts), lookup)
        if target is None:
            continue
        view = f"{options.view_prefix}{len(scans)}"
        scans.append(Scan(view, target))
        alias = "" if aliased else f" AS {quote(parts[-1])}"
        edits.append((tokens[first].start, tokens[after - 1].end, quote(view) + alias))
    return RewrittenQuery(spliced(lexer.text, edits), tuple(scans))


def table_names_in(tokens: list[Token]) -> Iterator[tuple[list[str], int, int, bool]]:
    """Yield the names that tables have in a statement whose shape is not known.

    Each with the indexes of its first token and of the one after it, and whether it has an alias.
    """
    expressions = _common_names(tokens)
    for index in range(len(tokens) - 1):
        if not _expects_table(tokens, index) or not tokens[index + 1].is_name:
            continue
        parts, after = columns_room.dotted_at(tokens, index + 1)
        is_common = len(parts) == 1 and parts[0].lower() in expressions
        if tokens[after].text != "(" and not is_common:
            yield parts, index + 1, after, _has_alias(tokens[after])


def _expects_table(tokens: list[Token], index: int) -> bool:
    """Return True for FROM and JOIN, and for TABLE where it reads one (not REFRESH TABLE, …)."""
    if tokens[index].word == "TABLE":
        return index == 0 or tokens[index - 1].kind is TokenKind.SYMBOL
    return tokens[index].word in ("FROM", "JOIN")


def _common_names(tokens: list[Token]) -> set[str]:
    """Return what may be the name of a common table expression, anywhere in the statement."""
    return {
        one.value.lower() for one, after in pairwise(tokens) if one.is_name and after.word == "AS"
    }


def _has_alias(token: Token) -> bool:
    return token.is_name and token.word not in AFTER_RELATION - {"AS"}
