"""Text with several statements -> the statements that are complete, and what is left."""

from __future__ import annotations

from rowlake.errors import InvalidStatementError
from rowlake.sqltext.lexer import Lexer, TokenKind

_QUOTES = "'\"`"


def split_statements(text: str) -> tuple[list[str], str]:
    """Split at semicolons outside strings, names and comments; what follows the last is left."""
    try:
        tokens = Lexer(text).all()
    except InvalidStatementError as error:
        return _unread(text, error.position or 0)
    statements: list[str] = []
    start = 0
    for token in tokens:
        if token.kind is TokenKind.SYMBOL and token.text == ";":
            statements.append(text[start : token.start].strip())
            start = token.end
    left = text[start:]
    return [statement for statement in statements if statement], left if left.strip() else ""


def _unread(text: str, position: int) -> tuple[list[str], str]:
    """Return a text that cannot be read: whole, so that running it says why, or as not over yet."""
    goes_on = text[position] in _QUOTES or text.startswith("/*", position)
    if goes_on or not text.rstrip().endswith(";"):
        return [], text  # a string or a comment that goes on in the next line
    return [text.strip()], ""


def has_statement(text: str) -> bool:
    """Return whether there is more in a text than spaces and comments."""
    try:
        return any(token.kind is not TokenKind.END for token in Lexer(text).all())
    except InvalidStatementError:
        return True
