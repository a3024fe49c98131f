"""Operations run as a user writes them: statements, `Table.update` and the builder of MERGE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.model.merge import Action, When
from rowlake.model.predicate import TRUE
from tests.histories import driver
from tests.histories.operations import Clause, Delete, Merge, Operation, Update
from tests.histories.values import as_arrow, sql_condition, sql_name, sql_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.model.predicate import Predicate
    from rowlake.model.result import Result
    from tests.histories.values import Column

_NESTED = {"struct": "struct<a: int, b: string>", "list": "array<int>"}


def run(table: Any, operation: Operation) -> Result:
    """Run an operation through the lake's SQL; what has no statement runs as it does elsewhere."""
    if isinstance(operation, Merge):
        return _merge(table, operation)
    if isinstance(operation, Update):
        return _update(table, operation)
    if isinstance(operation, Delete) and not operation.blind:
        where = "TRUE" if operation.condition == TRUE else sql_condition(operation.condition)
        return table.delete(where, **driver.options_of(operation.options))
    return driver.run(table, operation)


def _update(table: Any, operation: Update) -> Result:
    values = {
        sql_name(column.name): _text(operation.values[column.key], column)
        for column in operation.columns
        if column.key in operation.values
    }
    where = None if operation.condition is None else sql_condition(operation.condition)
    return table.update(values, where, **driver.options_of(operation.options))


def _merge(table: Any, operation: Merge) -> Result:
    keys = [
        f"t.{sql_name(target.name)} {'<=>' if safe else '='} s.{sql_name(source.name)}"
        for target, source, safe in operation.keys
    ]
    on = _all_of([*keys, *_sides(operation.on_source, operation.on_target)])
    rows: Any = as_arrow(operation.rows, operation.source)
    if len(operation.rows) % 2:
        rows = table.lake.engine.from_arrow(rows)
    builder = table.merge(rows, on, **driver.options_of(operation.options))
    for clause in operation.clauses:
        builder = _with_clause(builder, clause, operation.columns)
    return builder.execute()


def _with_clause(builder: Any, clause: Clause, columns: Sequence[Column]) -> Any:
    condition = _all_of(_sides(clause.on_source, clause.on_target)) or None
    name = {
        (When.MATCHED, Action.UPDATE): "when_matched_update",
        (When.MATCHED, Action.DELETE): "when_matched_delete",
        (When.NOT_MATCHED, Action.INSERT): "when_not_matched_insert",
        (When.NOT_MATCHED_BY_SOURCE, Action.UPDATE): "when_not_matched_by_source_update",
        (When.NOT_MATCHED_BY_SOURCE, Action.DELETE): "when_not_matched_by_source_delete",
    }[clause.when, clause.action]
    if clause.action is Action.DELETE:
        return getattr(builder, name)(condition)
    values = {
        sql_name(column.name): _value(clause.values[column.key], column)
        for column in columns
        if column.key in clause.values
    }
    return getattr(builder, name)(values, condition)


def _value(value: Column | tuple[Any], column: Column) -> str:
    return _text(value[0], column) if isinstance(value, tuple) else f"s.{sql_name(value.name)}"


def _sides(source: Predicate | None, target: Predicate | None) -> list[str]:
    """Return the texts of conditions on one side each."""
    sides = ((source, "s."), (target, "t."))
    return [sql_condition(found, side) for found, side in sides if found is not None]


def _all_of(texts: Sequence[str]) -> str:
    return " AND ".join(f"({text})" for text in texts)


def _text(value: Any, column: Column) -> str:
    if value is None or column.kind not in _NESTED:
        return sql_value(value)
    if column.kind == "list":
        made = f"array({', '.join(map(sql_value, value))})"
    else:
        fields = [f"{sql_value(name)}, {sql_value(held)}" for name, held in value.items()]
        made = f"named_struct({', '.join(fields)})"
    return f"CAST({made} AS {_NESTED[column.kind]})"
