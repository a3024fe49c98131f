"""Tokens of a Spark SQL text, made on demand.

Comes in: a statement. Goes out: tokens with their offsets, so that the parsers can point at
errors and splice the text without printing it again. Only what is asked for is read: the rows of
a long INSERT are never tokenised. Comments and white space come out as nothing. What is nested too
deep or too long (`rowlake.sqltext.limits`) is refused here, before anything recurses into it.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

from rowlake.errors import InvalidStatementError
from rowlake.sqltext.limits import MAX_DEPTH, MAX_OPERATORS, MAX_TOKENS, MAX_TYPE_DEPTH


class TokenKind(enum.Enum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted name"
    STRING = "string"
    NUMBER = "number"
    PARAMETER = "parameter"
    SYMBOL = "symbol"
    END = "end of statement"


@dataclass(frozen=True)
class Token:
    """One token: `text` as written, between `start` and `end` of the statement."""

    kind: TokenKind
    text: str
    start: int
    end: int

    @cached_property
    def word(self) -> str:
        """The upper-case keyword that this may be; empty where it cannot be one."""
        return self.text.upper() if self.kind is TokenKind.WORD else ""

    @property
    def is_name(self) -> bool:
        """Return True for what can be a part of a name."""
        return self.kind in (TokenKind.WORD, TokenKind.QUOTED)

    @cached_property
    def value(self) -> str:
        """The name without its quotes, the string with its escapes resolved, or the text."""
        if self.kind is TokenKind.QUOTED:
            return self.text[1:-1].replace("``", "`")
        if self.kind is TokenKind.STRING:
            return _string_value(self.text)
        return self.text


_TOKEN = re.compile(
    r"""
      (?P<SKIP>\s+|--(?:\\\n|[^\n])*|/\*(?!\+))
    | (?P<STRING>[rR]'[^']*'|[rR]"[^"]*"
        |'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'|"[^"\\]*(?:(?:\\.|"")[^"\\]*)*")
    | (?P<QUOTED>`(?:[^`]|``)+`)
    | (?P<NUMBER>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?:BD|bd|Bd|bD|[LlSsYyDdFf])?(?!\w))
    | (?P<WORD>\w+)
    | (?P<PARAMETER>(?<![\w`\]])[:][A-Za-z_]\w*|\?)
    | (?P<SYMBOL>/\*\+|\*/|<=>|\|>|\|\||<=|>=|<>|!=|==|=>|->|::|[-+*/%=<>(){}\[\],.;:!~&|^@$])
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = dict(TokenKind.__members__)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_KEPT = {"%": "\\%", "_": "\\_"}


def _string_value(text: str) -> str:
    if text[0] in "rR":
        return text[2:-1]
    quote, body = text[0], text[1:-1]
    body = body.replace(quote * 2, quote) if "\\" not in body else _undouble(body, quote)
    return _ESCAPE.sub(_unescape, body) if "\\" in body else body


def _undouble(body: str, quote: str) -> str:
    pattern = re.compile(rf"(\\.)|{quote}{quote}", re.DOTALL)
    return pattern.sub(lambda match: match[1] or f"\\{quote}", body)


def _unescape(match: re.Match[str]) -> str:
    short, long, octal, other = match.groups()
    if short or long:
        return chr(int(short or long, 16))
    if octal:
        return chr(int(octal, 8))
    return _ESCAPED.get(other) or _KEPT.get(other) or str(other)


_OPENS = frozenset({"(", "[", "{", "CASE"})
_CLOSES = {")": "(", "]": "[", "}": "{", "END": "CASE", ">": "<"}
_PREFIXES = frozenset({"NOT", "-", "+", "~", "!"})
_OPERATORS = frozenset({"+", "-", "*", "/", "%", "||", "&", "|", "^", "->", ":"})
_PARTING = frozenset({",", ";", "AND", "OR", "FROM", "WHEN", "THEN", "ELSE", "UNION", "SELECT"})
_TYPES = frozenset({"ARRAY", "LIST", "MAP", "STRUCT"})
_MARKS = _OPENS | set(_CLOSES) | _PREFIXES | _OPERATORS | _PARTING | _TYPES | {"<"}
_LONGEST_MARK = max(map(len, _MARKS))


class _Nesting:
    """Counts what is open at a place of a text, each kind of bracket by itself."""

    def __init__(self) -> None:
        self.open = dict.fromkeys((*_OPENS, "<"), 0)
        self.operators = [0]  # in each pair of round brackets that is open
        self.prefixes = 0
        self.before = ""

    def skip(self) -> None:
        """Count a token that is none of the marks."""
        self.prefixes, self.before = 0, ""

    def is_too_deep(self, mark: str) -> bool:
        """Count one symbol or keyword; return True where that is one level too many."""
        self.prefixes = self.prefixes + 1 if mark in _PREFIXES else 0
        if mark in _PARTING:
            self.operators[-1] = 0
            self.open["<"] *= mark == ","  # a comma may be one of struct<a, b>
        elif mark in _OPERATORS:
            self.operators[-1] += 1
        elif mark in _OPENS or (mark == "<" and self.before in _TYPES):
            self._opened(mark)
        elif mark in _CLOSES:
            self._closed(_CLOSES[mark])
        self.before = mark
        return (
            self.prefixes > MAX_DEPTH
            or self.operators[-1] > MAX_OPERATORS
            or self.open["<"] > MAX_TYPE_DEPTH
            or (mark in _OPENS and self.open[mark] > MAX_DEPTH)
        )

    def _opened(self, mark: str) -> None:
        self.open[mark] += 1
        if mark == "(":
            self.operators.append(0)

    def _closed(self, mark: str) -> None:
        if self.open[mark]:
            self.open[mark] -= 1
            if mark == "(":
                self.operators.pop()


class Lexer:
    """A statement and as many of its tokens as were asked for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens: list[Token] = []
        self._offset = 0
        self._nesting = _Nesting()

    def token(self, index: int) -> Token:
        """Return the token at an index; past the end, the END token."""
        while index >= len(self._tokens):
            if self._tokens and self._tokens[-1].kind is TokenKind.END:
                return self._tokens[-1]
            self._tokens.append(self._next())
        return self._tokens[index]

    def all(self) -> list[Token]:
        """Return every token, END included."""
        while not self._tokens or self._tokens[-1].kind is not TokenKind.END:
            self._tokens.append(self._next())
        return self._tokens

    def _next(self) -> Token:
        while self._offset < len(self.text):
            match = _TOKEN.match(self.text, self._offset)
            if match is None:
                raise self._bad_character()
            start, self._offset = self._offset, match.end()
            if match.lastgroup != "SKIP":
                token = Token(_KINDS[match.lastgroup or ""], match[0], start, self._offset)
                self._check(token)
                return token
            if match[0] == "/*":
                self._skip_comment(start)
        return Token(TokenKind.END, "", len(self.text), len(self.text))

    def _check(self, token: Token) -> None:
        """Refuse what is beyond the limits of a statement."""
        mark = token.text if token.kind is TokenKind.SYMBOL else ""
        if token.kind is TokenKind.WORD and len(token.text) <= _LONGEST_MARK:
            mark = token.word
        if mark not in _MARKS:
            self._nesting.skip()
        elif self._nesting.is_too_deep(mark):
            self._refuse("The statement is nested too deep here", token.start)
        if len(self._tokens) >= MAX_TOKENS:
            self._refuse(f"The statement has more than {MAX_TOKENS:,} words", token.start)

    def _refuse(self, what: str, position: int) -> NoReturn:
        message = f"{what}: split it, or put its values into a table and join that"
        raise InvalidStatementError(message, statement=self.text, position=position)

    def _skip_comment(self, start: int) -> None:
        depth = 1
        while depth:
            edge = _COMMENT_EDGE.search(self.text, self._offset)
            if edge is None:
                raise InvalidStatementError(
                    "A comment is not closed", statement=self.text, position=start
                )
            depth += 1 if edge[0] == "/*" else -1
            self._offset = edge.end()

    def _bad_character(self) -> InvalidStatementError:
        found = self.text[self._offset]
        what = "A quote is not closed" if found in "'\"`" else f"Unexpected character {found!r}"
        return InvalidStatementError(what, statement=self.text, position=self._offset)


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quote(name: str) -> str:
    """Return a name as Spark SQL reads it back, in backticks."""
    return "`" + name.replace("`", "``") + "`"


def quote_parts(parts: tuple[str, ...] | list[str]) -> str:
    """Return a dotted name with every part in backticks."""
    return ".".join(map(quote, parts))


def readable(parts: tuple[str, ...] | list[str]) -> str:
    """Return a dotted name with backticks only where they are needed, for messages."""
    return ".".join(part if _PLAIN.fullmatch(part) else quote(part) for part in parts)


def string_literal(text: str) -> str:
    """Return a text as a Spark SQL string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


QUERY_STARTS = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE"})
