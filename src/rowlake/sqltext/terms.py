"""Partition and sort terms: `bucket(16, id)`, `days(ts)`, `name DESC NULLS LAST`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.sqltext.lexer import TokenKind

if TYPE_CHECKING:
    from rowlake.sqltext.cursor import Cursor
    from rowlake.sqltext.names import Name

_UNARY = {
    "identity": "identity",
    "year": "year",
    "years": "year",
    "month": "month",
    "months": "month",
    "day": "day",
    "days": "day",
    "date": "day",
    "hour": "hour",
    "hours": "hour",
    "date_hour": "hour",
    "void": "void",
}
_WITH_NUMBER = ("bucket", "truncate")


@dataclass(frozen=True)
class PartitionTerm:
    """One partition field as written: a transform of a column, with a name where given."""

    transform: str
    column: Name
    name: str | None = None


@dataclass(frozen=True)
class SortTerm:
    """One key of a sort order."""

    transform: str
    column: Name
    ascending: bool = True
    nulls_first: bool = True


def take_transform(cursor: Cursor) -> tuple[str, tuple[str, ...]]:
    """Take a transform of a column; a lone column is its identity."""
    start = cursor.current
    name = cursor.dotted_name("a column or a transform")
    if not cursor.at_symbol("("):
        return "identity", name
    cursor.advance()
    word = name[-1].lower() if len(name) == 1 else ""
    if word in _WITH_NUMBER:
        transform, column = _take_numbered(cursor, word)
    elif word in _UNARY:
        transform, column = _UNARY[word], cursor.dotted_name("a column")
    else:
        known = ", ".join(sorted({*_UNARY, *_WITH_NUMBER}))
        cursor.fail(f"Unknown transform {'.'.join(name)} (expected one of: {known})", start)
    cursor.expect_symbol(")")
    return transform, column


def _take_numbered(cursor: Cursor, word: str) -> tuple[str, tuple[str, ...]]:
    if cursor.current.kind is TokenKind.NUMBER:
        at = cursor.current
        number = cursor.integer()
        cursor.expect_symbol(",")
        column = cursor.dotted_name("a column")
    else:
        column = cursor.dotted_name("a column")
        cursor.expect_symbol(",")
        at = cursor.current
        number = cursor.integer()
    if number <= 0:
        cursor.fail(f"{word} needs a number above 0", at)
    return f"{word}[{number}]", column


def take_partition_term(cursor: Cursor, *, named: bool = False) -> PartitionTerm:
    """Take a partition term, with `AS name` where `named`."""
    transform, column = take_transform(cursor)
    name = cursor.name("a name") if named and cursor.accept("AS") else None
    return PartitionTerm(transform, column, name)


def take_sort_term(cursor: Cursor) -> SortTerm:
    """Take a sort term; nulls come first in ascending order unless said."""
    transform, column = take_transform(cursor)
    ascending = cursor.accept_one("ASC", "DESC") != "DESC"
    nulls_first = ascending
    if cursor.accept("NULLS"):
        nulls_first = cursor.expect_one("FIRST", "LAST") == "FIRST"
    return SortTerm(transform, column, ascending, nulls_first)


def take_sort_terms(cursor: Cursor) -> tuple[SortTerm, ...]:
    """Take sort terms between commas, in brackets or not."""
    bracketed = cursor.accept_symbol("(")
    terms = [take_sort_term(cursor)]
    while cursor.accept_symbol(","):
        terms.append(take_sort_term(cursor))
    if bracketed:
        cursor.expect_symbol(")")
    return tuple(terms)
