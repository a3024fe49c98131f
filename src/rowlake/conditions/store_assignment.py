"""Store assignment: the query of an INSERT fitted to the columns of its table.

Comes in: the query's columns and the table's, types as Spark's texts. Goes out: one Spark SQL
expression per table column, in the table's order. The rules are those of Spark's ANSI policy: a
number may become any number (an error where it does not fit), anything atomic a string, dates and
timestamps one another; a string never becomes a number, and nothing is cut silently.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError, SchemaMismatchError, shown
from rowlake.sqltext.lexer import quote, string_literal
from rowlake.sqltext.names import NameRules
from rowlake.sqltext.types import List, Map, Primitive, Struct, Type, ddl_text, parse_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_INTEGERS = {
    "tinyint": 8,
    "smallint": 16,
    "int": 32,
    "bigint": 64,
}
_NUMBERS = ("int", "long", "float", "double", "decimal")
_TIMES = ("date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")


@dataclass(frozen=True)
class SourceColumn:
    """A column of the query: its name, Spark type text, and how an expression refers to it."""

    name: str
    type: str
    reference: str


@dataclass(frozen=True)
class TargetColumn:
    """A column of the table; `default` is the SQL text of its write default.

    `is_made`: the table makes its values where rows lack them.
    """

    name: str
    type: str
    required: bool = False
    default: str | None = None
    is_made: bool = False


@dataclass(frozen=True)
class StoreAssignment:
    """How columns are matched.

    `columns`: the column list of the INSERT; `static`: PARTITION (column = value), as SQL texts;
    `ansi`: whether the session's CAST raises on overflow by itself; `whole_structs`: a struct must
    have every field of the column's.
    """

    table: str
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    static: Mapping[str, str] = field(default_factory=dict)
    names: NameRules = field(default_factory=NameRules)
    ansi: bool = True
    whole_structs: bool = False


def assigned(
    source: Sequence[SourceColumn], target: Sequence[TargetColumn], how: StoreAssignment
) -> list[str]:
    """Return `expression AS name` for every column of the table but those it makes itself."""
    static = {_target(target, how, name).name: text for name, text in how.static.items()}
    matched = _by_name(source, target, how) if how.by_name else _by_position(source, target, how)
    wanted = [one for one in target if not one.is_made or one.name in {*matched, *static}]
    return [f"{_value(column, matched, static, how)} AS {quote(column.name)}" for column in wanted]


def _value(
    column: TargetColumn,
    matched: Mapping[str, SourceColumn],
    static: Mapping[str, str],
    how: StoreAssignment,
) -> str:
    if column.name in static:
        return f"CAST({static[column.name]} AS {column.type})"
    if column.name in matched:
        found = matched[column.name]
        return converted(found.reference, found.type, column, how)
    if column.default is not None:
        return f"CAST({column.default} AS {column.type})"
    if column.required:
        raise SchemaMismatchError(
            f"Cannot write to {how.table}: column {column.name} is required, has no default "
            f"and gets no value. Give it one.",
            column=column.name,
        )
    return f"CAST(NULL AS {column.type})"


def _target(target: Sequence[TargetColumn], how: StoreAssignment, name: str) -> TargetColumn:
    for column in target:
        if how.names.same(column.name, name):
            return column
    known = shown(column.name for column in target)
    raise SchemaMismatchError(
        f"Cannot write to {how.table}: it has no column {name} (expected one of: {known}).",
        column=name,
    )


def _by_position(
    source: Sequence[SourceColumn], target: Sequence[TargetColumn], how: StoreAssignment
) -> dict[str, SourceColumn]:
    static = {_target(target, how, name).name for name in how.static}
    if how.columns is not None:
        wanted = [_target(target, how, name).name for name in how.columns]
        _reject_twice([*wanted, *static], how)
    else:
        wanted = [column.name for column in target if column.name not in static]
    if len(source) != len(wanted):
        raise SchemaMismatchError(
            f"Cannot write to {how.table}: {len(wanted)} columns are needed ({shown(wanted)}), "
            f"the query has {len(source)} ({shown(column.name for column in source)})."
        )
    return dict(zip(wanted, source, strict=True))


def _by_name(
    source: Sequence[SourceColumn], target: Sequence[TargetColumn], how: StoreAssignment
) -> dict[str, SourceColumn]:
    matched: dict[str, SourceColumn] = {}
    static = [_target(target, how, name).name for name in how.static]
    for column in source:
        name = _target(target, how, column.name).name
        _reject_twice([*matched, *static, name], how)
        matched[name] = column
    return matched


def _reject_twice(names: list[str], how: StoreAssignment) -> None:
    twice = [name for index, name in enumerate(names) if name in names[:index]]
    if twice:
        raise SchemaMismatchError(
            f"Cannot write to {how.table}: column {twice[0]} gets two values.", column=twice[0]
        )


# --- types


def converted(expression: str, source: str, target: TargetColumn, how: StoreAssignment) -> str:
    """Return the expression as the target's type; SchemaMismatchError where that is not allowed.

    Nested values are always cast: that makes all their fields nullable, as the table's are.
    """
    if source == target.type and "<" not in source:
        return expression
    one, other = _parsed(source), _parsed(target.type)
    if (
        one is None
        or other is None
        or not is_assignable(one, other, how.names if how.by_name else None)
        or (how.whole_structs and not _has_every_field(one, other, how.names))
    ):
        raise SchemaMismatchError(
            f"Cannot write {source} to column {target.name} of {how.table}, which is "
            f"{target.type}. Cast it in the query.",
            column=target.name,
        )
    return _conversion(expression, one, other, target.type, how)


def _parsed(text: str) -> Type | None:
    try:
        return parse_type(text)
    except InvalidStatementError:
        return None


def is_assignable(source: Type, target: Type, names: NameRules | None = None) -> bool:
    """Return True where Spark's ANSI policy stores one type as another.

    Fields of structs are matched by `names` where given, else by position.
    """
    if source == target or source == Primitive("unknown"):
        return True
    if isinstance(source, Primitive) and isinstance(target, Primitive):
        return _is_primitive_assignable(source.name, target.name)
    if isinstance(source, List) and isinstance(target, List):
        return is_assignable(source.element, target.element, names)
    if isinstance(source, Map) and isinstance(target, Map):
        keys = is_assignable(source.key, target.key)
        return keys and is_assignable(source.value, target.value)
    if isinstance(source, Struct) and isinstance(target, Struct):
        return _are_fields_assignable(source, target, names)
    return False


def _are_fields_assignable(source: Struct, target: Struct, names: NameRules | None) -> bool:
    if names is None:
        pairs = list(zip(source.fields, target.fields, strict=False))
        same = len(source.fields) == len(target.fields)
        return same and all(is_assignable(one.type, other.type) for one, other in pairs)
    for given in source.fields:
        wanted = [found for found in target.fields if names.same(found.name, given.name)]
        if len(wanted) != 1 or not is_assignable(given.type, wanted[0].type, names):
            return False
    return True


def _has_every_field(source: Type, target: Type, names: NameRules) -> bool:
    if isinstance(source, List) and isinstance(target, List):
        return _has_every_field(source.element, target.element, names)
    if isinstance(source, Map) and isinstance(target, Map):
        return _has_every_field(source.value, target.value, names)
    if not isinstance(source, Struct) or not isinstance(target, Struct):
        return True
    for wanted in target.fields:
        found = [given for given in source.fields if names.same(given.name, wanted.name)]
        if not found or not _has_every_field(found[0].type, wanted.type, names):
            return False
    return True


def _is_primitive_assignable(source: str, target: str) -> bool:
    if target == "string":
        return source not in ("variant",)
    one, other = source.partition("(")[0], target.partition("(")[0]
    if one in _NUMBERS and other in _NUMBERS:
        return True
    return one in _TIMES and other in _TIMES


def _conversion(
    expression: str, source: Type, target: Type, text: str, how: StoreAssignment
) -> str:
    if how.by_name and _has_struct(target) and not isinstance(source, Primitive):
        return _matched_by_name(expression, source, target, how)
    cast = f"CAST({expression} AS {text})"
    if how.ansi or not isinstance(target, Primitive):
        return cast
    return _checked(expression, cast, text)


def _has_struct(found: Type) -> bool:
    if isinstance(found, List):
        return _has_struct(found.element)
    if isinstance(found, Map):
        return _has_struct(found.value)
    return isinstance(found, Struct)


def _matched_by_name(expression: str, source: Type, target: Type, how: StoreAssignment) -> str:
    """Return a nested value with the fields of its structs matched by name."""
    if isinstance(source, Struct) and isinstance(target, Struct):
        fields = []
        for wanted in target.fields:
            found = [f for f in source.fields if how.names.same(f.name, wanted.name)]
            if not found:
                value = f"CAST(NULL AS {ddl_text(wanted.type)})"
            else:
                inner = f"{expression}.{quote(found[0].name)}"
                kind = ddl_text(wanted.type)
                value = _conversion(inner, found[0].type, wanted.type, kind, how)
            fields.append(f"{string_literal(wanted.name)}, {value}")
        return f"IF({expression} IS NULL, NULL, named_struct({', '.join(fields)}))"
    if isinstance(source, List) and isinstance(target, List):
        kind = ddl_text(target.element)
        inner = _conversion("e", source.element, target.element, kind, how)
        return f"transform({expression}, e -> {inner})"
    return f"CAST({expression} AS {ddl_text(target)})"


def _checked(expression: str, cast: str, text: str) -> str:
    """Return a cast that raises where the session's own would wrap or give null."""
    bits = _INTEGERS.get(text)
    if bits:
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        fits = f"{expression} IS NULL OR {expression} BETWEEN {low} AND {high}"
    else:
        fits = f"{expression} IS NULL OR {cast} IS NOT NULL"
    message = string_literal(f"A value does not fit into {text}")
    return f"CASE WHEN {fits} THEN {cast} ELSE CAST(raise_error({message}) AS {text}) END"
