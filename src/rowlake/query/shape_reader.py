"""Tokens of a query to its shape.

Comes in: a text and the token where a query starts. Goes out: a `QueryShape`.
Follows Spark's grammar for clauses and relations and skips over expressions, into whose
subqueries it looks. What it does not follow (pipes, IDENTIFIER(…), …) raises `NotFollowed`; the
caller then leaves the statement unoptimised. A query in brackets is read once: what follows its
closing brackets tells it from an operand or a joined table, and a failed attempt is remembered.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from rowlake.query.change_feeds import change_arguments
from rowlake.query.shape import (
    TABLE_CHANGES,
    Cte,
    CteReference,
    Derived,
    HiddenRelation,
    Join,
    Opaque,
    QueryBlock,
    QueryShape,
    Reference,
    Relation,
    Span,
    TimeTravel,
)
from rowlake.query.token_reader import (
    AFTER_RELATION,
    CLAUSES,
    JOIN_WORDS,
    SET_OPERATIONS,
    TAIL,
    NotFollowed,
    TokenReader,
    TooDeep,
)
from rowlake.sqltext.lexer import QUERY_STARTS, Lexer, TokenKind
from rowlake.sqltext.limits import MAX_ALL_JOINS, MAX_FOLLOWED, MAX_JOINS

if TYPE_CHECKING:
    from collections.abc import Iterator

_VERSION_MARK = re.compile(r"[vV](\d{1,18})")
_TIME_MARK = re.compile(r"(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})(\d{3})")


class ShapeReader(TokenReader):
    """One pass over the tokens of a query."""

    def __init__(self, lexer: Lexer, start: int = 0) -> None:
        super().__init__(lexer, start)
        self.scopes: list[list[Cte]] = []
        self.level = self.joins = 0
        self.refused: set[tuple[str, int]] = set()

    # --- queries

    def whole(self) -> QueryShape:
        """Return the query from here to the end of the text."""
        query = self.query()
        while self.accept_symbol(";"):
            pass
        self.need(self.current.kind is TokenKind.END)
        return query

    @contextmanager
    def _deeper(self, kind: str) -> Iterator[None]:
        """Count a level; what failed before at a place is not read there again."""
        start = kind, self.index
        self.need(start not in self.refused)
        if self.level >= MAX_FOLLOWED:
            raise TooDeep(self.current.start)
        self.level += 1
        try:
            yield
        except NotFollowed:
            self.refused.add(start)
            raise
        finally:
            self.level -= 1

    def query(self) -> QueryShape:
        """Take a query with its common table expressions, set operations and tail."""
        with self._deeper("query"):
            return self._query()

    def _query(self) -> QueryShape:
        query = QueryShape()
        self.scopes.append(query.ctes)
        if self.accept("WITH"):
            self._ctes(query)
        query.operands.append(self._operand())
        while self.current.word in SET_OPERATIONS:
            query.set_operations.append(self._set_operation())
            query.operands.append(self._operand())
        while self.current.word in TAIL:
            name = self.current.word.lower()
            self.index += 1
            query.tail[name] = self._expression(TAIL | SET_OPERATIONS, query.nested)
        self.scopes.pop()
        return query

    def _ctes(self, query: QueryShape) -> None:
        recursive = self.accept("RECURSIVE")
        while True:
            self.need(self.current.is_name)
            cte = Cte(self.advance().value, QueryShape())
            if recursive:
                query.ctes.append(cte)
            if self.at("("):
                cte.renamed = True
                self._brackets([])
            if self.accept("MAX", "RECURSION", "LEVEL"):
                self.index += 1
            self.accept("AS")
            self.need(self.accept_symbol("("))
            cte.query = self.query()
            self.need(self.accept_symbol(")"))
            if not recursive:
                query.ctes.append(cte)
            if not self.accept_symbol(","):
                return

    def _set_operation(self) -> str:
        word = self.advance().word
        kind = self.advance().word if self.current.word in ("ALL", "DISTINCT") else ""
        if self.accept("BY", "NAME"):
            kind += " BY NAME"
        return f"{word} {kind}".strip()

    def _operand(self) -> QueryBlock | QueryShape:
        if self.at("("):
            self.index += 1
            query = self.query()
            self.need(self.accept_symbol(")"))
            return query
        start = self.index
        block = self._block()
        block.span = (start, self.index)
        return block

    def _block(self) -> QueryBlock:
        block = QueryBlock()
        if self.accept("VALUES"):
            block.kind = "values"
            block.clauses["select"] = self._expression(TAIL | SET_OPERATIONS, block.nested)
            return block
        if self.current.word == "TABLE":
            self.index += 1
            block.kind = "table"
            block.relations.append(self._named())
            return block
        if self.accept("FROM"):
            self._from(block)
        self.need(self.accept("SELECT"))
        self._select(block)
        if self.accept("FROM"):
            self.need(not block.relations)
            self._from(block)
        self._filters(block)
        return block

    def _select(self, block: QueryBlock) -> None:
        if self.at("/*+"):
            block.hinted = True
            while not self.accept_symbol("*/"):
                self.need(self.current.kind is not TokenKind.END)
                self.index += 1
        self.need(self.current.word != "TRANSFORM" or self.peek(1).text != "(" or self.is_call())
        block.distinct = self.current.word == "DISTINCT"
        if self.current.word in ("ALL", "DISTINCT"):
            self.index += 1
        block.clauses["select"] = self._expression(CLAUSES, block.nested)

    def _from(self, block: QueryBlock) -> None:
        while True:
            block.relations.append(self._relation(block))
            if not self.accept_symbol(","):
                break
        while self.accept("LATERAL", "VIEW"):
            block.lateral_views = True
            self._expression(CLAUSES, block.nested)

    def _filters(self, block: QueryBlock) -> None:
        if self.accept("WHERE"):
            block.clauses["where"] = self._expression(CLAUSES, block.nested)
        if self.accept("GROUP", "BY"):
            block.clauses["group"] = self._expression(CLAUSES, block.nested)
        if self.accept("HAVING"):
            block.clauses["having"] = self._expression(CLAUSES, block.nested)

    # --- relations

    def _relation(self, block: QueryBlock) -> Relation:
        left, before = self._primary(block), self.joins
        while True:
            if self.joins - before > MAX_JOINS or self.joins > MAX_ALL_JOINS:
                raise TooDeep(self.current.start)
            if self.current.word in ("PIVOT", "UNPIVOT"):
                block.pivoted = True
                self.index += 1
                if self.current.word in ("INCLUDE", "EXCLUDE"):
                    self.index += 2
                self._brackets(block.nested)
                self._alias()
                left = HiddenRelation(left)
            elif self._at_join():
                left = self._join(block, left)
            else:
                return left

    def _at_join(self) -> bool:
        return self.current.word in JOIN_WORDS

    def _join(self, block: QueryBlock, left: Relation) -> Join:
        natural = self.accept("NATURAL")
        kind = self._join_kind()
        self.need(self.accept("JOIN"))
        self.joins += 1
        join = Join(kind, left, self._primary(block), natural=natural)
        if self.accept("ON"):
            stops = CLAUSES | JOIN_WORDS | {"PIVOT", "UNPIVOT"}
            join.on = self._expression(stops, block.nested, commas=False)
        elif self.accept("USING"):
            first, last = self._brackets(block.nested)
            join.using = tuple(t.value for t in self.tokens[first:last] if t.is_name)
        return join

    def _join_kind(self) -> str:
        side = self.current.word
        if side in ("INNER", "CROSS", "SEMI", "ANTI"):
            self.index += 1
            return {"SEMI": "semi", "ANTI": "anti"}.get(side, "inner")
        if side in ("LEFT", "RIGHT", "FULL"):
            self.index += 1
            if side == "LEFT" and self.current.word in ("SEMI", "ANTI"):
                return self.advance().word.lower()
            self.accept("OUTER")
            return side.lower()
        return "inner"

    def _primary(self, block: QueryBlock) -> Relation:
        lateral = self.accept("LATERAL")
        if self.at("("):
            return self._bracketed(block, lateral)
        if self.current.word == "VALUES":
            return self._inline_values(block)
        self.need(self.current.is_name)
        if self.is_function():
            return self._function()
        return self._named()

    def _bracketed(self, block: QueryBlock, lateral: bool) -> Relation:
        saved = self.index
        query = self._try_query()
        if query is not None:
            sampled = self._sample(block)
            alias, renamed = self._alias()
            return Derived(query, alias, renamed, lateral, sampled)
        self.index = saved
        with self._deeper("relation"):
            self.index += 1
            relation = self._relation(block)
        self.need(self.accept_symbol(")"))
        hides = self._sample(block)
        alias, _ = self._alias()
        return HiddenRelation(relation) if alias or hides else relation

    def _inline_values(self, block: QueryBlock) -> Opaque:
        self.index += 1
        while True:
            if self.at("("):
                self._brackets(block.nested)
            else:
                self._expression(AFTER_RELATION, block.nested, commas=False)
            if not (self.at(",") and self.peek(1).text == "("):
                break
            self.index += 1
        return Opaque(self._alias()[0])

    def _function(self) -> Relation:
        self.need(self.current.word != "IDENTIFIER")
        begin = self.index
        while not self.at("("):
            self.index += 1
        nested: list[QueryShape] = []
        first, last = self._brackets(nested)
        self.need(all(token.word != "TABLE" for token in self.tokens[first:last]))
        if self.tokens[begin].value.lower() == TABLE_CHANGES and first == begin + 2:
            found = self._changes(begin, (first, last))
            if found is not None:
                return found
        return Opaque(self._alias()[0], nested)

    def _changes(self, begin: int, arguments: Span) -> Reference | None:
        """Return `table_changes('table', start[, end])` as a table; None where it is not that."""
        given = change_arguments(self.tokens[slice(*arguments)], self.text)
        if given is None:
            return None
        start, end = self.tokens[begin].start, self.tokens[self.index - 1].end
        alias, renamed = self._alias()
        found = Reference(given.table, (begin, self.index), start, end, end, None, alias, renamed)
        return replace(found, span_of_changes=given.span)

    def _named(self) -> Relation:
        first, start = self.index, self.current.start
        parts = [self.advance().value]
        while self.at(".") and self.peek(1).is_name:
            self.index += 1
            parts.append(self.advance().value)
        travel = self._travel()
        cte = self._visible_cte(parts[0]) if len(parts) == 1 and travel is None else None
        end = self.tokens[self.index - 1].end
        sampled = self._sample(None)
        alias_at = self.tokens[self.index - 1].end
        alias, renamed = self._alias()
        if cte is not None:
            cte.uses += 1
            return CteReference(cte, alias, renamed or cte.renamed)
        span = (first, self.index)
        return Reference(tuple(parts), span, start, end, alias_at, travel, alias, renamed, sampled)

    def _visible_cte(self, name: str) -> Cte | None:
        for scope in reversed(self.scopes):
            for cte in reversed(scope):
                if cte.name.lower() == name.lower():
                    return cte
        return None

    def _travel(self) -> TimeTravel | None:
        if self.at("@") and self.current.start == self.peek(-1).end == self.peek(1).start - 1:
            return self._travel_mark()
        saved = self.index
        self.accept("FOR")
        word = self.current.word
        if word not in ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"):
            self.index = saved
            return None
        self.index += 1
        if not self.accept("AS", "OF"):
            self.index = saved
            return None
        start = self.current.start
        self._travel_value()
        kind = "version" if "VERSION" in word else "timestamp"
        return TimeTravel(kind, self.text[start : self.tokens[self.index - 1].end])

    def _travel_mark(self) -> TimeTravel:
        """Take `@v3` or `@20240131123000000`, Delta's short forms behind a name."""
        self.index += 1
        text = self.advance().text
        version = _VERSION_MARK.fullmatch(text)
        if version is not None:
            return TimeTravel("version", version[1])
        time = _TIME_MARK.fullmatch(text)
        self.need(time is not None)
        assert time is not None
        day, clock = "-".join(time.groups()[:3]), ":".join(time.groups()[3:6])
        return TimeTravel("timestamp", f"TIMESTAMP'{day} {clock}.{time[7]}'")

    def _travel_value(self) -> None:
        """Take operands joined by operators: a literal, a call, a cast, an interval."""
        while True:
            token = self.advance()
            self.need(token.kind is not TokenKind.END)
            if token.word == "INTERVAL":
                self.index += 2
            elif token.text == "(":
                self.index -= 1
                self._brackets([])
            elif token.is_name and self.at("("):
                self._brackets([])
            elif token.is_name and self.current.kind is TokenKind.STRING:
                self.index += 1
            if self.current.text not in ("+", "-", "||"):
                return
            self.index += 1

    def _sample(self, block: QueryBlock | None) -> bool:
        if not self.accept("TABLESAMPLE"):
            return False
        if self.accept("SYSTEM") or self.accept("BERNOULLI"):
            pass
        self._brackets(block.nested if block else [])
        if self.accept("REPEATABLE"):
            self._brackets([])
        return True

    def _alias(self) -> tuple[str | None, bool]:
        explicit = self.accept("AS")
        token = self.current
        is_clause = token.word in AFTER_RELATION and not self._is_where_alone()
        if not token.is_name or (not explicit and is_clause):
            self.need(not explicit)
            return None, False
        self.index += 1
        renamed = self.at("(")
        if renamed:
            self._brackets([])
        return token.value, renamed

    def _is_where_alone(self) -> bool:
        """Return whether WHERE ends the query: then it is a name, as Spark reads it."""
        if self.current.word != "WHERE":
            return False
        after = self.peek(1)
        return after.kind is TokenKind.END or after.text in (")", ";")

    # --- expressions

    def _expression(
        self, stops: frozenset[str], nested: list[QueryShape], *, commas: bool = True
    ) -> Span:
        """Skip to a stop word; a closing bracket, a pipe and the end stop too.

        Commas are a part of it unless told otherwise.
        """
        first = self.index
        symbols = (")", ";", "|>") if commas else (")", ";", "|>", ",")
        while self.current.kind is not TokenKind.END:
            if self.current.kind is TokenKind.SYMBOL and self.current.text in symbols:
                break
            if self.current.word in stops and not self.is_part_of_expression():
                break
            self._step(nested)
        return first, self.index

    def _step(self, nested: list[QueryShape]) -> None:
        if not self.at("("):
            self.index += 1
        elif not self._take_query(nested):
            self._brackets(nested)

    def _take_query(self, nested: list[QueryShape]) -> bool:
        """Take a query in brackets where there is one."""
        saved = self.index
        query = self._try_query()
        if query is None:
            self.index = saved
            return False
        query.exists = self.tokens[max(saved - 1, 0)].word == "EXISTS"
        nested.append(query)
        return True

    def _brackets(self, nested: list[QueryShape]) -> Span:
        """Take a pair of brackets; return the span inside."""
        self.need(self.at("(") and self.index in self.closing)
        first, last = self.index + 1, self.closing[self.index]
        self.index = first
        while self.index < last:
            if not (self.at("(") and self._take_query(nested)):
                self.need(self.current.word != "SELECT")
                self.index += 1
        self.need(self.index == last)
        self.index += 1
        return first, last

    def _try_query(self) -> QueryShape | None:
        """Take a query in brackets; None (and any place) where it is something else."""
        ahead = 0
        while self.peek(ahead).text == "(" and self.peek(ahead).kind is TokenKind.SYMBOL:
            ahead += 1
        if self.peek(ahead).word not in QUERY_STARTS or self.peek(ahead + 1).text in (",", ")"):
            return None
        if not all(map(self.ends_query, range(self.index + 1, self.index + ahead))):
            return None
        depth, uses = len(self.scopes), [(c, c.uses) for scope in self.scopes for c in scope]
        try:
            self.index += 1
            query = self.query()
            self.need(self.accept_symbol(")"))
        except TooDeep:
            raise
        except NotFollowed:
            del self.scopes[depth:]
            for cte, count in uses:
                cte.uses = count
            return None
        return query
