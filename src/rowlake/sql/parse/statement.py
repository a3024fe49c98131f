"""A statement's text to what it asks for.

Comes in: one Spark SQL statement. Goes out: a dataclass of `rowlake.sql.statements`. Only the
statements of tables and namespaces are understood; queries and whatever else stay text for
Spark. Only as much of a statement is read as decides what it is: rows of VALUES are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError
from rowlake.sql.parse.alter import parse_alter
from rowlake.sql.parse.create import QUERY_WORDS, parse_create, parse_drop, parse_replace
from rowlake.sql.parse.delta import parse_convert, parse_generate, parse_reorg, parse_restore
from rowlake.sql.parse.row_level import parse_row_level
from rowlake.sql.parse.show import parse_describe, parse_show, parse_use
from rowlake.sql.parse.views import parse_cache, parse_clear, parse_refresh, parse_uncache
from rowlake.sql.parse.write import (
    parse_analyze,
    parse_call,
    parse_comment,
    parse_explain,
    parse_insert,
    parse_optimize,
    parse_truncate,
    parse_vacuum,
    parse_with,
)
from rowlake.sql.statements import Passthrough, Query, Statement
from rowlake.sqltext.cursor import Cursor
from rowlake.sqltext.lexer import TokenKind

if TYPE_CHECKING:
    from collections.abc import Callable

_PARSERS: dict[str, Callable[[Cursor], Statement]] = {
    "CREATE": parse_create,
    "REPLACE": parse_replace,
    "DROP": parse_drop,
    "ALTER": parse_alter,
    "SHOW": parse_show,
    "DESCRIBE": parse_describe,
    "DESC": parse_describe,
    "USE": parse_use,
    "INSERT": parse_insert,
    "TRUNCATE": parse_truncate,
    "DELETE": parse_row_level,
    "UPDATE": parse_row_level,
    "MERGE": parse_row_level,
    "EXPLAIN": parse_explain,
    "OPTIMIZE": parse_optimize,
    "VACUUM": parse_vacuum,
    "RESTORE": parse_restore,
    "REORG": parse_reorg,
    "CONVERT": parse_convert,
    "GENERATE": parse_generate,
    "CALL": parse_call,
    "ANALYZE": parse_analyze,
    "COMMENT": parse_comment,
    "CACHE": parse_cache,
    "UNCACHE": parse_uncache,
    "CLEAR": parse_clear,
    "REFRESH": parse_refresh,
}


def parse(text: str) -> Statement:
    """Return what a statement asks for; InvalidStatementError names the place of a mistake."""
    if not isinstance(text, str):
        raise InvalidStatementError(f"A statement is text, not a {type(text).__name__}.")
    _check_unicode(text)
    cursor = Cursor(text)
    first = cursor.current
    if first.kind is TokenKind.END:
        raise InvalidStatementError("The statement is empty", statement=text, position=0)
    if first.word == "WITH":
        return parse_with(cursor) or Query(text)
    if first.word in QUERY_WORDS or first.text == "(":
        return Query(text)
    parser = _PARSERS.get(first.word)
    return parser(cursor) if parser else Passthrough(text)


def _check_unicode(text: str) -> None:
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError as error:
        raise InvalidStatementError(
            "The statement is no Unicode text", statement=text, position=error.start
        ) from error
