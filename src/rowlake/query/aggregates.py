"""Aggregates over one lake table, split into partial aggregates and a final one.

Comes in: a block that aggregates one table. Goes out: what each scan task is to compute (group
columns and partial aggregates), and the edits that make the block aggregate those instead. Names
and types of the result are Spark's own; where that is not certain, nothing is split. Everything
that is not an aggregate of a plain column, a group column or a well-known scalar function stops
the split, so that no aggregate function ever meets partial rows unawares.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.conditions.reader import ConditionReader, Pushed
from rowlake.conditions.token_groups import column_path, split_commas
from rowlake.model.schema import type_name
from rowlake.query.scope import Resolver, Scope
from rowlake.sqltext.lexer import Kind, Token, quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from rowlake.model.predicate import Predicate
    from rowlake.model.schema import Schema
    from rowlake.query.shape import Block, Query, Reference
    from rowlake.sqltext.names import Names

Edit = tuple[int, int, str]


@dataclass(frozen=True)
class Partial:
    """One partial aggregate: a column `name` of what each task yields.

    Functions are those of `rowlake.scan.aggregate`: `count_all`; `count`, `min`, `max` of a
    column; `sum`, which is decimal(38, 0) for integers, double for floats, decimal(p + 10, s) for
    decimals.
    """

    function: str
    column: str | None
    name: str


@dataclass(frozen=True)
class Aggregation:
    """What a scan is to yield instead of rows: group columns, then partials.

    `predicate` selects exactly the rows that count. `from_metadata`: counts and bounds of the
    files can answer it, where they are exact.
    """

    group_by: tuple[str, ...]
    partials: tuple[Partial, ...]
    predicate: Predicate | None = None
    from_metadata: bool = False


_SCALAR_WORDS = """
    ABS BIGINT BOOLEAN CAST CEIL CEILING COALESCE CONCAT CONCAT_WS DATE DATE_FORMAT DAY DECIMAL
    DOUBLE FLOAT FLOOR FORMAT_NUMBER GREATEST HOUR IF IFNULL INT LEAST LENGTH LOWER MONTH NULLIF
    NVL NVL2 ROUND STRING SUBSTR SUBSTRING TO_DATE TRIM TRY_CAST TRY_DIVIDE UPPER YEAR
    IN AND OR NOT WHEN THEN ELSE BETWEEN LIKE
"""
_SCALARS = frozenset(_SCALAR_WORDS.split())
_AGGREGATES = frozenset({"COUNT", "SUM", "MIN", "MAX", "AVG", "MEAN"})
_REFUSED = frozenset({"OVER", "FILTER", "WITHIN", "DISTINCT", "ALL", "ROLLUP", "CUBE", "GROUPING"})


class NotSplit(Exception):
    """The block is left as it is."""


@dataclass
class _Work:
    """What is known of a block while it is read."""

    groups: list[str] = field(default_factory=list)
    partials: list[Partial] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)


class Splitter:
    """Splits the aggregates of one block over one table."""

    def __init__(
        self,
        tokens: list[Token],
        reference: Reference,
        schema: Schema,
        names: Names,
        arguments: Mapping[str | int, Any],
    ) -> None:
        scope = Scope((reference,))
        self.tokens, self.reference, self.names = tokens, reference, names
        self.resolve = Resolver(reference, schema, scope, names)
        self.reader = ConditionReader(self.resolve, arguments)
        self.work = _Work()

    def split(self, block: Block, query: Query | None) -> tuple[Aggregation, list[Edit]]:
        """Return the aggregation and the edits; NotSplit where the block is not split.

        `query` is the query that the block alone makes up: its ORDER BY is read too.
        """
        self._check(block, query)
        predicate = self._predicate(block)
        items = split_commas(self._span(block.clauses["select"]))
        self.work.groups = self._groups(block, items)
        for item in items:
            self._item(item)
        if "having" in block.clauses:
            self._expression(self._span(block.clauses["having"]))
        for span in (query.tail if query else {}).values():
            self._expression(self._span(span))
        if not self.work.partials:
            raise NotSplit
        plain = not self.work.groups and predicate is None
        functions = {partial.function for partial in self.work.partials}
        answered = plain and functions <= {"count_all", "count", "min", "max"}
        found = Aggregation(tuple(self.work.groups), tuple(self.work.partials), predicate, answered)
        return found, self.work.edits

    def _span(self, span: tuple[int, int]) -> list[Token]:
        return self.tokens[slice(*span)]

    def _check(self, block: Block, query: Query | None) -> None:
        whole = self.reference.sampled or self.reference.renamed
        odd = block.distinct or block.hinted or block.lateral_views or block.pivoted
        nested = block.nested or (query is not None and query.nested)
        known = set(block.clauses) <= {"select", "where", "group", "having"}
        if whole or odd or nested or not known or block.kind != "select":
            raise NotSplit
        if query is not None and not set(query.tail) <= {"order", "limit", "offset"}:
            raise NotSplit

    def _predicate(self, block: Block) -> Predicate | None:
        if "where" not in block.clauses:
            return None
        first, last = block.clauses["where"]
        pushed: Pushed | None = self.reader.read(self.tokens[first:last])
        if pushed is None or not pushed.exact:
            raise NotSplit
        self.work.edits.append((self.tokens[first - 1].start, self.tokens[last - 1].end, ""))
        return pushed.predicate

    # --- GROUP BY

    def _groups(self, block: Block, items: list[Sequence[Token]]) -> list[str]:
        if "group" not in block.clauses:
            return []
        found: list[str] = []
        for item in split_commas(self._span(block.clauses["group"])):
            name = self._group(item, items)
            if name not in found:
                found.append(name)
        return found

    def _group(self, item: Sequence[Token], items: list[Sequence[Token]]) -> str:
        if len(item) == 1 and item[0].kind is Kind.NUMBER:
            return self._ordinal(item[0], items)
        path = column_path(item)
        if path is None or (len(path) == 1 and path[0].upper() == "ALL"):
            raise NotSplit
        column = self.resolve(path)
        if column is None and len(path) == 1:
            return self._aliased(path[0], items)
        return self._group_column(path)

    def _ordinal(self, token: Token, items: list[Sequence[Token]]) -> str:
        if not token.text.isdecimal() or not 1 <= int(token.text) <= len(items):
            raise NotSplit
        expression, _ = without_alias(items[int(token.text) - 1])
        return self._group_column(column_path(expression))

    def _aliased(self, alias: str, items: list[Sequence[Token]]) -> str:
        for item in items:
            expression, name = without_alias(item)
            if name is not None and self.names.same(name, alias):
                return self._group_column(column_path(expression))
        raise NotSplit

    def _group_column(self, path: tuple[str, ...] | None) -> str:
        column = self.resolve(path) if path else None
        if column is None or len(column.path) != 1 or not _is_key(column.field):
            raise NotSplit
        return column.path[0]

    # --- expressions

    def _item(self, item: Sequence[Token]) -> None:
        """Read one item of the SELECT list; keep its name."""
        expression, alias = without_alias(item)
        calls = self._expression(expression)
        if alias is not None or column_path(expression) is not None:
            return
        if not (len(calls) == 1 and calls[0][0] == 0 and calls[0][1] == len(expression)):
            raise NotSplit
        name = self._default_name(expression)
        self.work.edits.append((item[-1].end, item[-1].end, f" AS {quote(name)}"))

    def _default_name(self, call: Sequence[Token]) -> str:
        """Return the name that Spark gives an aggregate of a column."""
        inner = call[2:-1]
        path = column_path(inner)
        return f"{call[0].text.lower()}({path[-1] if path else 1})"

    def _expression(self, tokens: Sequence[Token]) -> list[tuple[int, int]]:
        """Replace aggregates in an expression; refuse what may not meet partial rows."""
        calls: list[tuple[int, int]] = []
        index = 0
        while index < len(tokens):
            token = tokens[index]
            called = index + 1 < len(tokens) and tokens[index + 1].text == "("
            if token.word in _AGGREGATES and called:
                end = self._aggregate(tokens, index)
                calls.append((index, end))
                index = end
                continue
            if token.word in _REFUSED or (
                token.text in ("*", "->") and not _is_product(tokens, index)
            ):
                raise NotSplit
            if called and token.is_name and token.word not in _SCALARS:
                raise NotSplit
            index = self._name(tokens, index) if token.is_name and not called else index + 1
        return calls

    def _name(self, tokens: Sequence[Token], index: int) -> int:
        """Pass a name that is a group column, or none of the table's columns at all."""
        end = index + 1
        while end + 1 < len(tokens) and tokens[end].text == "." and tokens[end + 1].is_name:
            end += 2
        path = tuple(token.value for token in tokens[index:end:2])
        column = self.resolve(path) or self.resolve(path[:1])
        if column is not None and column.path[0] not in self.work.groups:
            raise NotSplit
        if column is None and self.names.same(path[0], self.reference.visible_name):
            raise NotSplit
        return end

    def _aggregate(self, tokens: Sequence[Token], index: int) -> int:
        """Replace one aggregate call; return the index after it."""
        end, depth = index + 1, 0
        while end < len(tokens):
            depth += (tokens[end].text == "(") - (tokens[end].text == ")")
            end += 1
            if depth == 0:
                break
        function, inner = tokens[index].word, tokens[index + 2 : end - 1]
        if end < len(tokens) and tokens[end].word in _REFUSED:
            raise NotSplit
        final = self._final(function, inner)
        self.work.edits.append((tokens[index].start, tokens[end - 1].end, final))
        return end

    def _final(self, function: str, inner: Sequence[Token]) -> str:
        if function == "COUNT" and len(inner) == 1 and _is_row_count(inner[0]):
            return f"coalesce(sum({self._partial('count_all', None)}), 0L)"
        path = column_path(inner)
        column = self.resolve(path) if path else None
        if column is None or len(column.path) != 1 or type_name(column.field) is not None:
            raise NotSplit
        name, kind = column.path[0], column.field.type
        if function == "COUNT":
            return f"coalesce(sum({self._partial('count', name)}), 0L)"
        if function in ("MIN", "MAX"):
            if not _is_ordered(kind):
                raise NotSplit
            return f"{function.lower()}({self._partial(function.lower(), name)})"
        return self._sum(name, kind) if function == "SUM" else self._average(name, kind)

    def _sum(self, name: str, kind: pa.DataType) -> str:
        if pa.types.is_decimal(kind) and kind.precision <= 28:
            total = self._partial("sum", name)
            return f"CAST(sum({total}) AS DECIMAL({kind.precision + 10}, {kind.scale}))"
        if pa.types.is_integer(kind):
            return f"CAST(sum({self._partial('sum', name)}) AS BIGINT)"
        if not pa.types.is_floating(kind):
            raise NotSplit
        return f"sum({self._partial('sum', name)})"

    def _average(self, name: str, kind: pa.DataType) -> str:
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise NotSplit
        total, count = self._partial("sum", name), self._partial("count", name)
        return f"(CAST(sum({total}) AS DOUBLE) / nullif(sum({count}), 0L))"

    def _partial(self, function: str, column: str | None) -> str:
        for known in self.work.partials:
            if (known.function, known.column) == (function, column):
                return quote(known.name)
        made = Partial(function, column, f"__partial_{len(self.work.partials)}")
        self.work.partials.append(made)
        return quote(made.name)


def without_alias(item: Sequence[Token]) -> tuple[Sequence[Token], str | None]:
    """Return the expression of a SELECT item, and its alias."""
    if len(item) > 2 and item[-2].word == "AS" and item[-1].is_name:
        return item[:-2], item[-1].value
    if len(item) > 1 and item[-1].is_name and item[-1].word != "END":
        before = item[-2]
        operand = before.is_name or before.kind in (Kind.NUMBER, Kind.STRING)
        if before.text == ")" or (operand and before.word not in _SCALARS | {"IS"}):
            return item[:-1], item[-1].value
    return item, None


def _is_row_count(token: Token) -> bool:
    return token.text == "*" or (token.kind is Kind.NUMBER and token.text == "1")


def _is_product(tokens: Sequence[Token], index: int) -> bool:
    """Return True for a `*` between two operands."""
    if tokens[index].text != "*" or index == 0:
        return False
    before = tokens[index - 1]
    return before.text == ")" or before.is_name or before.kind is Kind.NUMBER


def _is_key(column: pa.Field) -> bool:
    if type_name(column) is not None:
        return False
    kind = column.type
    return _is_ordered(kind) or pa.types.is_boolean(kind)


def _is_ordered(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "us")
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    texts = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(numbers or texts or pa.types.is_date(kind) or pa.types.is_boolean(kind))
