"""`system.bucket(16, id)` and the like in statements: rewritten to functions that Spark can call.

Only where Spark evaluates them; what a condition says of a table's partitions is read from the
statement as it was written.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rowlake.conditions.token_groups import column_path, unwrapped
from rowlake.conditions.transform_calls import SYSTEM, UNARY, WITH_NUMBER, transform_call
from rowlake.engine.system_functions import registered_function
from rowlake.errors import InvalidStatementError
from rowlake.sqltext.edits import spliced
from rowlake.sqltext.lexer import Lexer, quote, string_literal
from rowlake.sqltext.literals import literal_of
from rowlake.sqltext.types import Struct, ddl_text, parse_type
from rowlake.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rowlake.conditions.transform_calls import TransformCall
    from rowlake.query.lookup import TableLookup
    from rowlake.sqltext.edits import Edit
    from rowlake.sqltext.lexer import Token
    from rowlake.sqltext.names import Name, NameRules

    Tables = Callable[[], Sequence[Mapping[str, str]]]

_VERSION = "iceberg_version"
_RETURNS = {"bucket": "int", "year": "int", "month": "int", "hour": "int", "day": "date"}
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_TIMES = ("timestamp", "timestamp_ntz")
_ACCEPTED = {
    "bucket": (*_WHOLE, "decimal", "date", *_TIMES, "string", "binary"),
    "truncate": (*_WHOLE, "decimal", "string", "binary"),
    "year": ("date", *_TIMES),
    "month": ("date", *_TIMES),
    "day": ("date", *_TIMES),
    "hour": _TIMES,
}
_LITERALS = {"string": "string", "integer": "int", "binary": "binary"}


def has_system_calls(text: str) -> bool:
    """Return whether a text may call one of the functions."""
    if SYSTEM not in text.lower():
        return False
    tokens = Lexer(text).all()
    return any(one.word == SYSTEM.upper() and two.text == "." for one, two in pairwise(tokens))


def with_system_functions(text: str, lookup: TableLookup, tables: Tables) -> str:
    """Return a text whose calls are of functions of the session.

    `tables` gives the columns of what it reads, with Spark's types: `truncate` has its column's.
    """
    if not has_system_calls(text):
        return text
    tokens = Lexer(text).all()
    catalog = str(lookup.workspace.catalog.name).lower()
    edits = [
        _edit(text, tokens[start : _closed(tokens, opened) + 1], lookup, tables)
        for start, opened in _calls(tokens, catalog)
    ]
    return spliced(text, edits) if edits else text


def _calls(tokens: Sequence[Token], catalog: str) -> Iterable[tuple[int, int]]:
    """Yield where a call starts, and where its bracket is."""
    for at in range(len(tokens) - 3):
        name, dot, function, opened = tokens[at : at + 4]
        if name.word != SYSTEM.upper() or dot.text != "." or opened.text != "(":
            continue
        if function.value.lower() not in (*UNARY, *WITH_NUMBER, _VERSION):
            continue
        if at > 0 and tokens[at - 1].text == ".":
            if at < 2 or tokens[at - 2].value.lower() != catalog:
                continue
            yield at - 2, at + 3
        else:
            yield at, at + 3


def _closed(tokens: Sequence[Token], opened: int) -> int:
    depth = 0
    for at in range(opened, len(tokens)):
        depth += (tokens[at].text == "(") - (tokens[at].text == ")")
        if depth == 0:
            return at
    return len(tokens) - 1


def _edit(text: str, tokens: Sequence[Token], lookup: TableLookup, tables: Tables) -> Edit:
    start, end = tokens[0].start, tokens[-1].end
    if any(token.value.lower() == _VERSION for token in tokens[:5]):
        return (start, end, string_literal(f"rowlake {__version__}"))
    call = transform_call(tokens)
    if call is None:
        raise InvalidStatementError(
            f"{text[start:end]} is no transform of a column: write system.bucket(16, column), "
            "system.truncate(4, column) or system.days(column).",
            statement=text,
            position=start,
        )
    returns = _returned(call, _type_of(call.argument, lookup, tables), text, start)
    name = registered_function(lookup.workspace.spark, call.transform, returns)
    return (start, call.argument[0].start, f"{quote(name)}(")


def _returned(call: TransformCall, given: str | None, text: str, start: int) -> str:
    """Return the type of a function's values; raises where it does not take the argument."""
    kind = call.transform.partition("[")[0]
    known = given is None or given.partition("(")[0].lower() in _ACCEPTED[kind]
    returns = _RETURNS.get(kind) or given
    if known and returns is not None:
        return returns
    wanted = "a column or a literal" if returns is None else ", ".join(_ACCEPTED[kind])
    raise InvalidStatementError(
        f"Cannot take {call.transform} of {given or 'an expression'}: expected {wanted}.",
        statement=text,
        position=start,
    )


def _type_of(tokens: Sequence[Token], lookup: TableLookup, tables: Tables) -> str | None:
    """Return Spark's type of a column or a literal; None for anything else."""
    inner = unwrapped(tokens)
    path = column_path(inner) or ()
    for columns in tables() if path else ():
        for start in range(len(path)):
            found = _column_type(columns, path[start:], lookup.names)
            if found is not None:
                return found
    literal = literal_of(inner, {})
    return None if literal is None else _LITERALS.get(literal.kind)


def _column_type(columns: Mapping[str, str], path: Name, names: NameRules) -> str | None:
    """Return the type of a column, or of a field of it."""
    held = [columns[name] for name in columns if names.same(name, path[0])]
    found = parse_type(held[0]) if held else None
    for part in path[1:]:
        fields = found.fields if isinstance(found, Struct) else ()
        found = next((one.type for one in fields if names.same(one.name, part)), None)
    return None if found is None else ddl_text(found)
