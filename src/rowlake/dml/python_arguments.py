"""Columns, values and conditions that Python callers hand in, as the parts of a statement.

Texts are SQL and are read as a statement's are, so that a mistake is shown in its own text; other
values become literals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rowlake.dml.operations import assignment
from rowlake.errors import InvalidStatementError
from rowlake.sqltext.cursor import Cursor, take_value
from rowlake.sqltext.expression_end import CLAUSES_AFTER_WHERE
from rowlake.sqltext.lexer import quote, quote_parts, readable
from rowlake.sqltext.literal_text import literal_text

if TYPE_CHECKING:
    from rowlake.dml.operations import Assignment
    from rowlake.sqltext.names import Name


def assignments_of(values: Any, owners: tuple[Name, ...], what: str) -> tuple[Assignment, ...]:
    """Return `{"column": value}` as assignments; `what` names the argument in errors."""
    if not isinstance(values, Mapping) or not values:
        raise InvalidStatementError(
            f"{what} takes the columns and their values: {what}={{'column': 'expression'}}."
        )
    found: dict[Name, Assignment] = {}
    for column, value in values.items():
        made = assignment(column_of(column), value_of(value), owners)
        if made.column in found:
            raise InvalidStatementError(f"Column {readable(made.column)} is assigned twice.")
        found[made.column] = made
    return tuple(found.values())


def assigned(texts: Any, values: Any, owners: tuple[Name, ...]) -> tuple[Assignment, ...]:
    """Return the assignments of an UPDATE: of SQL texts (`set`), of values as they are, or both."""
    if values is None:
        return assignments_of(texts, owners, "set")
    if not isinstance(values, Mapping) or not values:
        raise InvalidStatementError(
            "values takes the columns and their values: values={'column': 7}."
        )
    found = (
        {} if texts is None else {one.column: one for one in assignments_of(texts, owners, "set")}
    )
    for column, value in values.items():
        made = assignment(column_of(column), literal_text(value), owners)
        if made.column in found:
            raise InvalidStatementError(f"Column {readable(made.column)} is assigned twice.")
        found[made.column] = made
    return tuple(found.values())


def column_of(column: Any) -> Name:
    """Return the parts of a column's name: `a`, `a.b` for a field of a struct, or a tuple.

    A text that is no dotted name (`order id`) is the name itself.
    """
    if isinstance(column, tuple) and column and all(isinstance(part, str) for part in column):
        return column
    if not isinstance(column, str) or not column.strip():
        raise InvalidStatementError(f"The name of a column is a text, not {column!r}.")
    try:
        cursor = Cursor(column)
        parts = cursor.dotted_name()
        return parts if cursor.at_end() else (column,)
    except InvalidStatementError:
        return (column,)


def value_of(value: Any) -> str:
    """Return the text of a value: a text is an expression already."""
    if not isinstance(value, str):
        return literal_text(value)
    cursor = Cursor(value)
    text = take_value(cursor)
    cursor.expect_end()
    return text


def condition_of(condition: Any, what: str = "condition") -> str | None:
    """Return the text of a condition; None stays None."""
    if condition is None:
        return None
    if not isinstance(condition, str):
        raise InvalidStatementError(
            f"{what} is the text of an SQL condition, not a {type(condition).__name__}."
        )
    cursor = Cursor(condition)
    text = cursor.skip_expression(*CLAUSES_AFTER_WHERE)
    cursor.expect_end()
    return text


def match_of(on: Any, target: str, source: str, columns: Collection[str] = ()) -> str:
    """Return the condition of a match: a text, or columns that both sides have.

    A dot leads into a struct, unless the table has a column (of `columns`) of just that name.
    """
    if isinstance(on, str):
        if _is_lone_name(on):
            raise InvalidStatementError(
                f"on={on!r} is no condition; give the columns as a list: on=[{on!r}]."
            )
        return condition_of(on, "on") or ""
    if not isinstance(on, Sequence) or not on:
        raise InvalidStatementError(
            f"on is a condition ('{target}.id = {source}.id') or a list of columns (['id'])."
        )
    names = [
        quote(column) if column in columns else quote_parts(column_of(column)) for column in on
    ]
    return " AND ".join(f"{target}.{name} = {source}.{name}" for name in names)


def _is_lone_name(text: str) -> bool:
    cursor = Cursor(text)
    return cursor.advance().is_name and cursor.at_end()
