"""A place among the tokens of a query, and what can be told from the tokens near it.

`query.shape_reader` builds the query from here; nothing in this module knows its shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.sqltext.lexer import QUERY_STARTS, Kind, Lexer, Token

if TYPE_CHECKING:
    from collections.abc import Sequence

SET_OPERATIONS = frozenset({"UNION", "EXCEPT", "MINUS", "INTERSECT"})
TAIL = frozenset({"ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW"})
CLAUSES = frozenset({"FROM", "WHERE", "GROUP", "HAVING", "LATERAL"}) | TAIL | SET_OPERATIONS
JOIN_WORDS = frozenset(
    {"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "NATURAL"}
)
AFTER_RELATION = (
    CLAUSES
    | JOIN_WORDS
    | {"ON", "USING", "TABLESAMPLE", "PIVOT", "UNPIVOT", "SELECT", "AS", "FOR", "WHEN", "SET"}
)


class NotFollowed(Exception):
    """The query has a form that is not followed here."""


class TooDeep(NotFollowed):
    """The query has more levels or joins than are followed; nothing in it is tried again."""


class TokenReader:
    """Tokens, the index of the one not yet taken, and where each bracket closes."""

    def __init__(self, lexer: Lexer, start: int = 0) -> None:
        self.text = lexer.text
        self.tokens = lexer.all()
        self.index = start
        self.closing = _closing(self.tokens)

    @property
    def current(self) -> Token:
        """The token not yet taken."""
        return self.peek(0)

    def peek(self, ahead: int) -> Token:
        """Return a token near the current one."""
        return self.tokens[max(0, min(self.index + ahead, len(self.tokens) - 1))]

    def at(self, symbol: str) -> bool:
        """Return True where this symbol comes next."""
        return self.current.kind is Kind.SYMBOL and self.current.text == symbol

    def accept(self, *words: str) -> bool:
        """Take these keywords where they come next."""
        if any(self.peek(offset).word != word for offset, word in enumerate(words)):
            return False
        self.index += len(words)
        return True

    def accept_symbol(self, symbol: str) -> bool:
        """Take this symbol where it comes next."""
        found = self.at(symbol)
        self.index += found
        return found

    def need(self, condition: bool) -> None:
        """Give up unless the condition holds."""
        if not condition:
            raise NotFollowed(self.current.start)

    def advance(self) -> Token:
        """Take the current token."""
        token = self.current
        self.index += 1
        return token

    def is_call(self) -> bool:
        """Return True where TRANSFORM(…) is the function; a script has USING after it."""
        depth, ahead = 0, 1
        while self.peek(ahead).kind is not Kind.END:
            text = self.peek(ahead).text
            depth += (text == "(") - (text == ")")
            ahead += 1
            if depth == 0:
                break
        return self.peek(ahead).word not in ("USING", "ROW")

    def is_function(self) -> bool:
        """Return True where a dotted name with brackets after it comes next."""
        ahead = 0
        while self.peek(ahead + 1).text == "." and self.peek(ahead + 2).is_name:
            ahead += 2
        return self.peek(ahead + 1).text == "("

    def is_part_of_expression(self) -> bool:
        """Return True for what stops a clause elsewhere: IS DISTINCT FROM, * EXCEPT (…)."""
        word, before, after = self.current.word, self.peek(-1), self.peek(1)
        if before.text == ".":
            return True
        if word == "FROM":
            return before.word == "DISTINCT" and self.peek(-2).word in ("IS", "NOT")
        if word == "GROUP":
            return before.word == "WITHIN"
        if word == "EXCEPT":
            starts = self.peek(2).word in QUERY_STARTS or self.peek(2).text == "("
            return before.text == "*" and after.text == "(" and not starts
        if word in ("LEFT", "RIGHT"):
            return after.text == "("
        return False

    def ends_query(self, opening: int) -> bool:
        """Return True where what follows a pair of brackets leaves a query in them one."""
        if opening not in self.closing:
            return False
        after = self.tokens[self.closing[opening] + 1]
        return after.text == ")" or after.word in SET_OPERATIONS or after.word in TAIL


def _closing(tokens: Sequence[Token]) -> dict[int, int]:
    """Return the index of the closing bracket for that of each opening one."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind is Kind.SYMBOL and token.text == "(":
            opened.append(index)
        elif token.kind is Kind.SYMBOL and token.text == ")" and opened:
            found[opened.pop()] = index
    return found
