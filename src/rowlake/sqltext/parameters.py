"""The parameters of a statement (`?`, `:name`) and the arguments given for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rowlake.errors import InvalidStatementError
from rowlake.sqltext.edits import spliced
from rowlake.sqltext.lexer import Kind, Lexer, Token

Arguments = Mapping[str, Any] | list[Any] | tuple[Any, ...] | None


def arguments_of(tokens: list[Token], arguments: Arguments) -> dict[str | int, Any]:
    """Return the values of parameters, by name, or by the offset of their `?`."""
    if not arguments:
        return {}
    if isinstance(arguments, Mapping):
        return {str(key): value for key, value in arguments.items()}
    marks = [token.start for token in tokens if token.text == "?"]
    return dict(zip(marks, arguments, strict=False))


_ARGUMENT = "rowlake_argument_"


def with_named_arguments(text: str, arguments: Any) -> tuple[str, Any]:
    """Return a statement in which every `?` has a name, and the arguments by these names."""
    if not arguments or isinstance(arguments, Mapping):
        return text, arguments
    marks = [token for token in Lexer(text).all() if token.kind is Kind.PARAMETER]
    marks = [token for token in marks if token.text == "?"]
    if len(marks) != len(arguments):
        raise InvalidStatementError(
            f"The statement has {len(marks)} parameters (?) but {len(arguments)} arguments."
        )
    names = [f"{_ARGUMENT}{index}" for index in range(len(marks))]
    edits = [(t.start, t.end, f":{name}") for t, name in zip(marks, names, strict=True)]
    return spliced(text, edits), dict(zip(names, arguments, strict=True))
