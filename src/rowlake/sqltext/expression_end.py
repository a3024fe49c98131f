"""Where an expression ends, found without reading it: brackets, CASE … END and keywords as names.

Comes in: tokens and the keywords that may follow the expression. Goes out: the index of the first
token after it. Spark's keywords may be names (`t.when`, `end > 1`), so a keyword only ends an
expression, and END only a CASE, where an operand came before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from rowlake.errors import InvalidStatementError
from rowlake.sqltext.lexer import Lexer, Token, TokenKind

if TYPE_CHECKING:
    from collections.abc import Collection

# What may follow the condition of a query; no such clause is a part of DELETE and UPDATE.
CLAUSES_AFTER_WHERE = (
    *("GROUP", "HAVING", "WINDOW", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET"),
    *("UNION", "EXCEPT", "INTERSECT", "MINUS"),
)
_CLOSED_BY = {")": "(", "]": "[", "}": "{"}
_INFIX = {"AND", "OR", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "DIV", "IS"}
_BRANCHES = {"WHEN", "THEN", "ELSE"}
_UNARY = {"-", "+", "~", "!", "(", "{"}


def end_of_expression(lexer: Lexer, start: int, stop_words: Collection[str] = ()) -> int:
    """Return the index of the token after the expression at `start`.

    It ends at a comma, semicolon, closing bracket or stop word outside of brackets and CASE, or
    with the statement. Raises where it is empty, or ends where something has to follow.
    """
    return _Walk(lexer, start, stop_words).end()


class _Walk:
    """One walk over the tokens of an expression."""

    def __init__(self, lexer: Lexer, start: int, stop_words: Collection[str]) -> None:
        self.lexer, self.index, self.stop_words = lexer, start, stop_words
        self.open: list[Token] = []
        self.has_operand = False

    def end(self) -> int:
        token = self.lexer.token(self.index)
        while token.kind is not TokenKind.END and not self._stops(token):
            self._take(token)
            self.index += 1
            token = self.lexer.token(self.index)
        if self.open:
            unclosed = self.open[-1]
            what = "CASE has no END" if unclosed.word else "A bracket is not closed"
            self._fail(what, unclosed)
        if not self.has_operand:
            self._fail(f"Expected an expression but found {token.text or token.kind.value}", token)
        return self.index

    def _fail(self, message: str, token: Token) -> NoReturn:
        raise InvalidStatementError(message, statement=self.lexer.text, position=token.start)

    @property
    def _before(self) -> str:
        return self.lexer.token(self.index - 1).text if self.index else ""

    def _stops(self, token: Token) -> bool:
        if token.kind is TokenKind.SYMBOL and token.text in _CLOSED_BY:
            return all(opened.text != _CLOSED_BY[token.text] for opened in self.open)
        if self.open:
            return False
        if token.kind is TokenKind.SYMBOL:
            return token.text in (",", ";")
        return token.word in self.stop_words and not self._is_name()

    def _is_name(self) -> bool:
        """Return True where the keyword at hand has to be a name: it stands as an operand."""
        if self._before == ".":
            return True
        after = self.lexer.token(self.index + 1)
        return not self.has_operand and (after.word in self.stop_words or _follows_operand(after))

    def _take(self, token: Token) -> None:
        if token.kind is TokenKind.SYMBOL:
            self._take_symbol(token)
        elif token.kind is TokenKind.WORD:
            self._take_word(token)
        else:
            self.has_operand = True

    def _take_symbol(self, token: Token) -> None:
        text = token.text
        opened = self.open[-1].text if self.open else ""
        if text in _CLOSED_BY.values() or self._opens_type(text, opened):
            self.open.append(token)
        elif text == ">" and opened == "<":
            self.open.pop()
        elif text in _CLOSED_BY:
            while self.open.pop().text != _CLOSED_BY[text]:
                pass
        # A star is an operand where none came before: count(*), t.*, SELECT *.
        is_star = text == "*" and not self.has_operand
        self.has_operand = is_star or text in _CLOSED_BY or (text == ">" and opened == "<")

    def _opens_type(self, text: str, opened: str) -> bool:
        """Return True for the brackets of `x::map<string, array<int>>`."""
        if text != "<":
            return False
        return opened == "<" or (self.index > 1 and self.lexer.token(self.index - 2).text == "::")

    def _take_word(self, token: Token) -> None:
        word, after = token.word, self.lexer.token(self.index + 1)
        if self._before == ".":
            self.has_operand = True
        elif word == "CASE" and not _follows_operand(after):
            self.open.append(token)
            self.has_operand = False
        elif word == "END" and self.open and self.open[-1].word == "CASE" and self.has_operand:
            self.open.pop()
        elif word in _INFIX or word in _BRANCHES:
            # Without an operand before it such a word is a name, but for CASE WHEN.
            self.has_operand = not self.has_operand and self._before.upper() != "CASE"
        else:
            self.has_operand = word != "NOT"


def _follows_operand(token: Token) -> bool:
    """Return True for what can only come after an operand."""
    if token.kind is TokenKind.SYMBOL:
        return token.text not in _UNARY
    return token.kind is TokenKind.END or token.word in _INFIX
