"""Which side an expression of a MERGE is about: the target, the source, both or neither.

Judged by the names in it, without its meaning: a name that may be a column of a side counts as
one. So "source only" is sure, and an expression that only looks mixed is still evaluated right,
by Spark after the join.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from rowlake.conditions.token_groups import column_path
from rowlake.errors import InvalidStatementError
from rowlake.sqltext.edits import spliced
from rowlake.sqltext.lexer import Lexer, Token, TokenKind, quote
from rowlake.sqltext.names import NameRules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_QUERY_WORDS = ("SELECT", "FROM", "VALUES", "EXISTS")
# Functions of no column that give every row of a statement the same value.
_STEADY = frozenset({"CURRENT_DATE", "CURRENT_TIMESTAMP", "NOW", "CAST", "DATE", "TIMESTAMP"})
# Words of literals and of their types; any other word may be a column, a metadata column too.
_LITERAL_WORDS = frozenset(
    {
        *("NULL", "TRUE", "FALSE", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "AS"),
        *("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "DOUBLE", "STRING"),
        *("DECIMAL", "BINARY", "BOOLEAN", "CURRENT_DATE", "CURRENT_TIMESTAMP", "X"),
    }
)
_RANDOM = frozenset(
    {
        *("RAND", "RANDOM", "RANDN", "UUID", "SHUFFLE", "RANDSTR", "UNIFORM"),
        *("MONOTONICALLY_INCREASING_ID", "SPARK_PARTITION_ID"),
    }
)


@dataclass(frozen=True)
class Side:
    """One side: how its columns are qualified, and their names."""

    qualifier: str | None
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Sides:
    """Both sides of a MERGE; of an UPDATE the target alone."""

    target: Side
    source: Side = field(default_factory=lambda: Side(None, ()))
    names: NameRules = field(default_factory=NameRules)

    def mentions_target(self, text: str) -> bool:
        """Return False only where no column of the target can be meant."""
        return self._mentions(text, self.target, self.source)

    def mentions_source(self, text: str) -> bool:
        """Return False only where no column of the source can be meant."""
        return self._mentions(text, self.source, self.target)

    def is_constant(self, text: str) -> bool:
        """Return True where an expression surely has one value for all rows."""
        if self.mentions_target(text) or self.mentions_source(text):
            return False
        tokens = Lexer(text).all()
        words = [path[0].upper() for path in _dotted(tokens)]
        steady = all(word in _STEADY for word in _calls(tokens))
        return steady and all(word in _LITERAL_WORDS for word in words)

    def target_column(self, text: str) -> str | None:
        """Return the top-level column of the target that an expression is, and nothing else."""
        return self._column(text, self.target, self.source)

    def source_column(self, text: str) -> str | None:
        """Return the top-level column of the source that an expression is, and nothing else."""
        return self._column(text, self.source, self.target)

    def about_target(self, text: str) -> str:
        """Return a text in which a name of both sides means the target's column."""
        return self._qualified(text, self.target, self.source)

    def about_source(self, text: str) -> str:
        """Return a text in which a name of both sides means the source's column."""
        return self._qualified(text, self.source, self.target)

    def names_target(self, text: str) -> bool:
        """Return True where a column is qualified as the target's."""
        paths = _dotted(Lexer(text).all())
        return any(len(path) > 1 and self._is(path[0], self.target) for path in paths)

    def names_source(self, text: str) -> bool:
        """Return True where a column is qualified as the source's."""
        paths = _dotted(Lexer(text).all())
        return any(len(path) > 1 and self._is(path[0], self.source) for path in paths)

    def _qualified(self, text: str, side: Side, other: Side) -> str:
        tokens = Lexer(text).all()
        if _has_query(tokens) or side.qualifier is None:
            return text
        edits = []
        for at, (token, after) in enumerate(pairwise(tokens)):
            dotted = at > 0 and tokens[at - 1].text == "."
            if not token.is_name or dotted or after.text == "(" or after.kind is TokenKind.STRING:
                continue
            both = all(
                any(self.names.same(name, token.value) for name in one.columns)
                for one in (side, other)
            )
            qualifier = self._is(token.value, side) or self._is(token.value, other)
            if both and not (qualifier and after.text == "."):
                edits.append((token.start, token.start, f"{quote(side.qualifier)}."))
        return spliced(text, edits) if edits else text

    def _column(self, text: str, side: Side, other: Side) -> str | None:
        tokens = [token for token in Lexer(text).all() if token.kind is not TokenKind.END]
        path = column_path(tokens)
        if path is None or len(path) > 2:
            return None
        if len(path) == 2 and not self._is(path[0], side):
            return None
        found = [name for name in side.columns if self.names.same(name, path[-1])]
        if len(path) == 1 and any(self.names.same(name, path[0]) for name in other.columns):
            return None
        return found[0] if len(found) == 1 else None

    def _mentions(self, text: str, side: Side, other: Side) -> bool:
        tokens = Lexer(text).all()
        if _has_query(tokens):
            return True
        for path in _dotted(tokens):
            if len(path) > 1 and self._is(path[0], other) and not self._is(path[0], side):
                continue
            if len(path) > 1 and self._is(path[0], side):
                return True
            if any(self.names.same(name, path[0]) for name in side.columns):
                return True
        return False

    def _is(self, name: str, side: Side) -> bool:
        return side.qualifier is not None and self.names.same(name, side.qualifier)


def refuse_random(text: str | None, where: str) -> None:
    """Refuse a condition that gives another answer each time it is asked, as Spark does."""
    for word in _calls(Lexer(text or "").all()):
        if word in _RANDOM:
            raise InvalidStatementError(
                f"{word.lower()}() cannot be used in {where}: it gives another value each time. "
                "Put it into a column of a query first."
            )


def _calls(tokens: Sequence[Token]) -> list[str]:
    """Return the names of the functions that a text calls, in upper case."""
    return [
        one.value.upper() for one, after in pairwise(tokens) if one.is_name and after.text == "("
    ]


def _has_query(tokens: Sequence[Token]) -> bool:
    return any(token.word in _QUERY_WORDS for token in tokens)


def _dotted(tokens: Sequence[Token]) -> Iterator[tuple[str, ...]]:
    """Yield the dotted names of a text that are not names of functions."""
    at = 0
    while at < len(tokens):
        if not tokens[at].is_name:
            at += 1
            continue
        parts = [tokens[at].value]
        while at + 2 < len(tokens) and tokens[at + 1].text == "." and tokens[at + 2].is_name:
            at += 2
            parts.append(tokens[at].value)
        at += 1
        if at >= len(tokens) or tokens[at].text != "(" or len(parts) > 1:
            yield tuple(parts)
