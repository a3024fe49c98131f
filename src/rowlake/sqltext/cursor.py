"""A place in a statement's tokens, and the small pieces that every statement is made of."""

from __future__ import annotations

from typing import NoReturn

from rowlake.errors import InvalidStatementError
from rowlake.sqltext.expression_end import end_of_expression
from rowlake.sqltext.lexer import Kind, Lexer, Token

_LONGEST_NUMBER = 40


class Cursor:
    """Walks the tokens of one statement; errors name the place."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lexer = Lexer(text)
        self.index = 0
        self.type_depth = 0

    @property
    def current(self) -> Token:
        """The token not yet taken."""
        return self.lexer.token(self.index)

    def peek(self, ahead: int = 1) -> Token:
        """Return a token after the current one."""
        return self.lexer.token(self.index + ahead)

    def advance(self) -> Token:
        """Take the current token."""
        token = self.current
        self.index += 1
        return token

    def fail(self, message: str, token: Token | None = None) -> NoReturn:
        """Raise with the place of a token (the current one unless given)."""
        at = token or self.current
        raise InvalidStatementError(message, statement=self.text, position=at.start)

    def expected(self, what: str) -> NoReturn:
        """Raise: something else was expected here."""
        found = self.current.text or self.current.kind.value
        self.fail(f"Expected {what} but found {found}")

    # --- words and symbols

    def at_words(self, *words: str) -> bool:
        """Return True where these keywords come next."""
        return all(self.peek(offset).word == word for offset, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Take these keywords where they come next."""
        if not self.at_words(*words):
            return False
        self.index += len(words)
        return True

    def accept_one(self, *choices: str) -> str | None:
        """Take one keyword of several; None where none comes next."""
        if self.current.word and self.current.word in choices:
            return self.advance().word
        return None

    def expect(self, *words: str) -> None:
        """Take these keywords or raise."""
        for word in words:
            if not self.accept(word):
                self.expected(word)

    def expect_one(self, *choices: str) -> str:
        """Take one keyword of several or raise."""
        found = self.accept_one(*choices)
        if found is None:
            self.expected(" or ".join(choices))
        return found

    def at_symbol(self, symbol: str) -> bool:
        """Return True where this symbol comes next."""
        return self.current.kind is Kind.SYMBOL and self.current.text == symbol

    def accept_symbol(self, symbol: str) -> bool:
        """Take this symbol where it comes next."""
        if not self.at_symbol(symbol):
            return False
        self.index += 1
        return True

    def expect_symbol(self, symbol: str) -> Token:
        """Take this symbol or raise."""
        if not self.at_symbol(symbol):
            self.expected(symbol)
        return self.advance()

    def at_end(self) -> bool:
        """Return True where only semicolons are left."""
        ahead = 0
        while self.peek(ahead).kind is Kind.SYMBOL and self.peek(ahead).text == ";":
            ahead += 1
        return self.peek(ahead).kind is Kind.END

    def expect_end(self) -> None:
        """Raise unless the statement is over."""
        if not self.at_end():
            self.expected("the end of the statement")

    # --- names and values

    def name(self, what: str = "a name") -> str:
        """Take one part of a name."""
        if not self.current.is_name:
            self.expected(what)
        return self.advance().value

    def dotted_name(self, what: str = "a name") -> tuple[str, ...]:
        """Take a dotted name."""
        parts = [self.name(what)]
        while self.accept_symbol("."):
            parts.append(self.name(what))
        return tuple(parts)

    def name_list(self, what: str = "a column name") -> tuple[tuple[str, ...], ...]:
        """Take dotted names between commas."""
        names = [self.dotted_name(what)]
        while self.accept_symbol(","):
            names.append(self.dotted_name(what))
        return tuple(names)

    def string(self, what: str = "a string") -> str:
        """Take a string literal."""
        if self.current.kind is not Kind.STRING:
            self.expected(what)
        return self.advance().value

    def integer(self, what: str = "a whole number") -> int:
        """Take a whole number."""
        text = self.current.text
        if self.current.kind is not Kind.NUMBER or not text.rstrip("Ll").isdecimal():
            self.expected(what)
        if len(text) > _LONGEST_NUMBER:
            self.fail("The number is too long")
        return int(self.advance().text.rstrip("Ll"))

    def if_exists(self) -> bool:
        """Take IF EXISTS where it comes next."""
        return self.accept("IF", "EXISTS")

    def if_not_exists(self) -> bool:
        """Take IF NOT EXISTS where it comes next."""
        return self.accept("IF", "NOT", "EXISTS")

    def rest(self) -> str:
        """Take the text up to the end, without closing semicolons."""
        start = self.current.start
        self.index = 1 << 60
        return self.text[start:].rstrip().rstrip(";").rstrip()

    def skip_expression(self, *stop_words: str) -> str:
        """Take the text of an expression: up to a comma, a closing bracket or a stop word."""
        start, after = self.index, end_of_expression(self.lexer, self.index, stop_words)
        self.index = after
        return self.text[self.lexer.token(start).start : self.lexer.token(after - 1).end]

    def bracketed(self) -> str:
        """Take the text from an opening bracket to the one that closes it."""
        first, depth = self.expect_symbol("("), 1
        while depth:
            if self.current.kind is Kind.END:
                self.fail("A bracket is not closed", first)
            depth += self.at_symbol("(") - self.at_symbol(")")
            last = self.advance()
        return self.text[first.start : last.end]


def properties(cursor: Cursor) -> dict[str, str]:
    """Take `('key' = 'value', …)`; keys may be dotted names, values literals."""
    found: dict[str, str] = {}
    cursor.expect_symbol("(")
    while True:
        key = property_key(cursor)
        if not cursor.accept_symbol("="):
            cursor.accept_symbol("==")
        found[key] = _property_value(cursor)
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    return found


def property_key(cursor: Cursor) -> str:
    """Take the key of a property: a string, or a dotted name (parts may be numbers)."""
    if cursor.current.kind is Kind.STRING:
        return cursor.advance().value
    parts = [_key_part(cursor)]
    while cursor.at_symbol(".") or cursor.at_symbol("-"):
        parts += [cursor.advance().text, _key_part(cursor)]
    return "".join(parts)


def _key_part(cursor: Cursor) -> str:
    if cursor.current.kind is Kind.NUMBER:
        return cursor.advance().text
    return cursor.name("the key of a property")


def _property_value(cursor: Cursor) -> str:
    token = cursor.current
    if token.kind is Kind.STRING:
        return cursor.advance().value
    if token.kind is Kind.NUMBER:
        return cursor.advance().text
    if token.word in ("TRUE", "FALSE"):
        return cursor.advance().word.lower()
    if cursor.accept_symbol("-"):
        return "-" + cursor.advance().text
    cursor.expected("the value of a property")
    return None


def take_value(cursor: Cursor, *stop_words: str) -> str:
    """Take the text of a value; DEFAULT comes out in capitals."""
    is_default = cursor.at_words("DEFAULT")
    text = cursor.skip_expression(*stop_words)
    return "DEFAULT" if is_default and text.upper() == "DEFAULT" else text
