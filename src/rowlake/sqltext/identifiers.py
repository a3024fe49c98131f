"""IDENTIFIER('ns.t') and IDENTIFIER(:name): names that are given as texts.

Spark puts the name in place of the clause before it reads the statement, and so is done here, so
that lake tables can be named this way. Clauses of other expressions stay, for Spark to evaluate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rowlake.sqltext.cursor import Cursor
from rowlake.sqltext.edits import spliced
from rowlake.sqltext.lexer import Kind, Lexer, quote_parts

if TYPE_CHECKING:
    from rowlake.sqltext.lexer import Token


def with_identifiers(text: str, arguments: Any = None) -> str:
    """Return a statement with the names that its IDENTIFIER clauses give."""
    if "identifier" not in text.lower():
        return text
    tokens = Lexer(text).all()
    edits = []
    for index, token in enumerate(tokens[:-3]):
        if token.word != "IDENTIFIER":
            continue
        opening, value, closing = tokens[index + 1 : index + 4]
        name = _given(value, arguments)
        if opening.text == "(" and closing.text == ")" and name is not None:
            edits.append((token.start, closing.end, _quoted(name)))
    return spliced(text, edits) if edits else text


def _given(token: Token, arguments: Any) -> str | None:
    if token.kind is Kind.STRING:
        return token.value
    if token.kind is Kind.PARAMETER and isinstance(arguments, Mapping):
        found = arguments.get(token.text[1:])
        return found if isinstance(found, str) else None
    return None


def _quoted(name: str) -> str:
    cursor = Cursor(name)
    parts = cursor.dotted_name()
    cursor.expect_end()
    return quote_parts(parts)
