"""MERGE WITH SCHEMA EVOLUTION: columns that the clauses take from the source are made room for.

Columns (and fields of structs) that only the source has are added, numbers are widened. All of it
is one change of the schema, committed before the rows, as Spark does it; columns that no clause
assigns are left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.dml.join_sides import Side, Sides
from rowlake.dml.merge_clauses import source_name
from rowlake.dml.target import row_target
from rowlake.sql.alter_statements import AddColumns, AlterColumn, AlterTable, NewColumn
from rowlake.sql.execute.alter import alter_table
from rowlake.sqltext.types import Field, Primitive, Struct, parse_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.dml.merge_source import MergeSource
    from rowlake.dml.operations import Merge
    from rowlake.dml.target import RowTarget
    from rowlake.sql.alter_statements import AlterAction
    from rowlake.sqltext.names import Names
    from rowlake.sqltext.types import Type

_WIDER = {"int": ("long",), "float": ("double",)}


def evolved(
    target: RowTarget, statement: Merge, source: MergeSource, options: dict[str, Any]
) -> RowTarget:
    """Return the target with all that the clauses need of the source's columns."""
    held = {column.name: parse_type(column.type) for column in target.columns}
    actions: list[AlterAction] = []
    for name in _taken(target, statement, source):
        kind = parse_type(source.types[name])
        known = [column for column in held if target.names.same(column, name)]
        if not known:
            actions.append(AddColumns((NewColumn(Field(name, kind)),)))
        else:
            actions += _grown((known[0],), held[known[0]], kind, target.names)
    if not actions:
        return target
    table = tuple(target.handle.identifier)
    alter_table(target.lake, AlterTable(table, tuple(actions)))
    return row_target(target.lake, statement.name, statement.alias, "merge into", options)


def _taken(target: RowTarget, statement: Merge, source: MergeSource) -> list[str]:
    """Return the columns of the source that some clause assigns to a column of the same name."""
    if any(clause.assignments is None for clause in statement.clauses):
        return list(source.columns)
    sides = Sides(Side(target.visible, ()), Side(source_name(statement), source.columns))
    return list(
        dict.fromkeys(
            name
            for clause in statement.clauses
            for each in clause.assignments or ()
            if (name := sides.source_column(each.value)) is not None
            and target.names.same(each.column[-1], name)
        )
    )


def _grown(path: tuple[str, ...], held: Type, given: Type, names: Names) -> Iterator[AlterAction]:
    """Yield what makes a column hold another type too; nothing where that cannot be."""
    if isinstance(held, Struct) and isinstance(given, Struct):
        for new in given.fields:
            old = [field for field in held.fields if names.same(field.name, new.name)]
            if old:
                yield from _grown((*path, old[0].name), old[0].type, new.type, names)
            else:
                yield AddColumns((NewColumn(Field(new.name, new.type), path),))
    elif isinstance(held, Primitive) and isinstance(given, Primitive) and _is_wider(held, given):
        yield AlterColumn(path, given)


def _is_wider(held: Primitive, given: Primitive) -> bool:
    if given.name in _WIDER.get(held.name, ()):
        return True
    one, other = held.name.partition("("), given.name.partition("(")
    if one[0] != "decimal" or other[0] != "decimal":
        return False
    precision, scale = (int(part) for part in one[2].rstrip(")").split(","))
    wider, same = (int(part) for part in other[2].rstrip(")").split(","))
    return wider > precision and same == scale
