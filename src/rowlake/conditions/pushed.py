"""One SQL condition over one table, as a predicate.

Comes in: the text of a condition. Goes out: what of it can be said as a predicate, and whether
that is all of it; what cannot be said is left to Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.conditions.column_lookup import find_column
from rowlake.conditions.reader import ConditionReader, Pushed
from rowlake.conditions.token_groups import conjuncts
from rowlake.errors import InvalidStatementError
from rowlake.model.predicate import TRUE, conjunction
from rowlake.sqltext.lexer import Lexer, TokenKind
from rowlake.sqltext.names import NameRules

if TYPE_CHECKING:
    from rowlake.conditions.comparisons import ComparedColumn
    from rowlake.model.schema import Schema


def pushed_condition(
    text: str,
    schema: Schema,
    *,
    zone: str | None = None,
    case_sensitive: bool = False,
    qualifier: str | None = None,
) -> Pushed:
    """Return what a condition says as a predicate; exact where it says it all.

    `qualifier` is the table's name or alias, which may stand before its columns.
    """
    tokens = [token for token in Lexer(text).all() if token.kind is not TokenKind.END]
    if not tokens:
        raise InvalidStatementError("The condition is empty.", statement=text, position=0)
    names = NameRules(case_sensitive, zone)

    def resolve(path: tuple[str, ...]) -> ComparedColumn | None:
        return find_column(schema, _unqualified(path, names, qualifier), names)

    reader = ConditionReader(resolve, {})
    read = [reader.read(part) for part in conjuncts(tokens)]
    known = [part for part in read if part is not None]
    exact = len(known) == len(read) and all(part.exact for part in known)
    return Pushed(conjunction(*(part.predicate for part in known)) if known else TRUE, exact)


def _unqualified(path: tuple[str, ...], names: NameRules, qualifier: str | None) -> tuple[str, ...]:
    is_qualified = qualifier is not None and len(path) > 1 and names.same(path[0], qualifier)
    return path[1:] if is_qualified else path


def columns_in(text: str, schema: Schema) -> list[str]:
    """Return the top-level columns that a condition may read: all that it names anywhere."""
    words = {token.value.lower() for token in Lexer(text).all() if token.is_name}
    return [name for name in schema.arrow.names if name.lower() in words]


def unknown_columns(
    text: str, schema: Schema, names: NameRules, qualifier: str
) -> list[tuple[str, ...]]:
    """Return what stands where comparisons have columns, but is none of the table's.

    Only what a pushed condition could say is looked at; names elsewhere are not found here.
    """
    missed: list[tuple[str, ...]] = []

    def resolve(path: tuple[str, ...]) -> ComparedColumn | None:
        path = _unqualified(path, names, qualifier)
        found = find_column(schema, path, names)
        if found is None:
            missed.append(path)
        return found

    reader = ConditionReader(resolve, {})
    for part in conjuncts(
        [token for token in Lexer(text).all() if token.kind is not TokenKind.END]
    ):
        reader.read(part)
    return missed
