"""SET lists and INSERT lists: which column gets which value, nested fields included.

Comes in: assignments as written. Goes out: for every column that is assigned to, the SQL text of
its new value in the column's type (ANSI store assignment). Assigning to a field of a struct keeps
the other fields of the row's struct; of a null struct they are null.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rowlake.conditions.column_lookup import find_column
from rowlake.conditions.store_assignment import TargetColumn, converted
from rowlake.errors import InvalidStatementError, SchemaMismatchError, shown
from rowlake.model.schema import children
from rowlake.query.lookup import names_without_spark
from rowlake.sqltext.lexer import quote, string_literal
from rowlake.sqltext.types import Struct, ddl_text, parse_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from rowlake.dml.operations import Assignment
    from rowlake.dml.target import RowTarget
    from rowlake.sqltext.types import Type

Path = tuple[str, ...]


@dataclass(frozen=True)
class Assigned:
    """A column with the texts that it, or fields of it, are set to (by path below the column).

    `structs`, by path too: a struct that is null stays so where this text is also null.
    `fills`: fields that the structs of a value lack become null; else they are an error.
    """

    column: TargetColumn
    values: Mapping[Path, str]
    structs: Mapping[Path, str] = field(default_factory=dict)
    fills: bool = False

    @property
    def plain(self) -> str | None:
        """The text of the new value where the column as a whole is set."""
        return self.values.get(())

    @property
    def texts(self) -> list[str]:
        """All texts of new values, as written."""
        return list(self.values.values())


def assigned_columns(assignments: Sequence[Assignment], target: RowTarget) -> list[Assigned]:
    """Return what each column is set to, in the table's order; each may be set once."""
    found: dict[str, dict[Path, str]] = {}
    for each in assignments:
        path = _resolved(each.column, target)
        values = found.setdefault(path[0], {})
        if any(_overlap(path[1:], other) for other in values):
            raise InvalidStatementError(
                f"Column {'.'.join(path)} of {target.view.name} is set twice."
            )
        values[path[1:]] = _value(each, path, target)
    return [
        Assigned(column, found[column.name]) for column in target.columns if column.name in found
    ]


def _resolved(name: Path, target: RowTarget) -> Path:
    names = names_without_spark(target.engine)
    column = find_column(target.view.schema, name, names)
    if column is None and len(name) > 1 and names.same(name[0], target.visible):
        column = find_column(target.view.schema, name[1:], names)
    if column is None:
        known = shown(target.view.schema.arrow.names)
        raise InvalidStatementError(
            f"{target.view.name} has no column {'.'.join(name)}; it has {known}."
        )
    return column.path


def _overlap(one: Path, other: Path) -> bool:
    length = min(len(one), len(other))
    return one[:length] == other[:length]


def _value(each: Assignment, path: Path, target: RowTarget) -> str:
    if each.value.strip().upper() != "DEFAULT":
        return each.value
    if len(path) > 1:
        raise InvalidStatementError(
            f"Column {'.'.join(path)} of {target.view.name} cannot be set to DEFAULT: only columns "
            "have defaults, not fields of structs."
        )
    (column,) = (found for found in target.columns if found.name == path[0])
    return default_text(column)


def default_text(column: TargetColumn) -> str:
    """Return the text of a column's default: null where it has none."""
    return f"CAST({column.default or 'NULL'} AS {column.type})"


def stored_text(found: Assigned, types: Mapping[str, str], target: RowTarget) -> str:
    """Return the new value of a column in its type; `types` has Spark's type of every text."""
    if found.plain is not None:
        return _checked(found.column, found.plain, types[found.plain], target, fills=found.fills)
    kind = target.view.schema.arrow.field(found.column.name).type
    base = f"{quote(target.visible)}.{quote(found.column.name)}"
    return _struct_text(base, kind, parse_type(found.column.type), (), found, types, target)


def _checked(
    column: TargetColumn, text: str, source_type: str, target: RowTarget, *, fills: bool = False
) -> str:
    assigning = replace(target.assigning, whole_structs=not fills)
    value = converted(f"({text})", source_type, column, assigning)
    if column.required and text.strip().upper() == "NULL":
        raise SchemaMismatchError(
            f"Cannot set column {column.name} of {target.view.name} to null: it is required.",
            column=column.name,
        )
    return value


def _struct_text(
    base: str,
    kind: pa.DataType,
    spark: Type,
    path: Path,
    found: Assigned,
    types: Mapping[str, str],
    target: RowTarget,
) -> str:
    assert isinstance(spark, Struct)
    parts = []
    for child, shown_as in zip(children(kind), spark.fields, strict=True):
        below = (*path, child.name)
        inner = f"{base}.{quote(child.name)}"
        text = found.values.get(below)
        if text is not None:
            column = TargetColumn(
                ".".join((found.column.name, *below)), ddl_text(shown_as.type), not child.nullable
            )
            value = _checked(column, text, types[text], target)
        elif any(other[: len(below)] == below for other in found.values):
            value = _struct_text(inner, child.type, shown_as.type, below, found, types, target)
        else:
            value = inner
        parts.append(f"{string_literal(child.name)}, {value}")
    made = f"named_struct({', '.join(parts)})"
    given = found.structs.get(path)
    return made if given is None else f"IF({base} IS NULL AND {given} IS NULL, NULL, {made})"
