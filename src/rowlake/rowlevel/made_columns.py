"""Columns whose values the table makes: no row may be written without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.errors import UnsupportedFeatureError
from rowlake.model.column_rules import default_text, generated_columns, identity_columns
from rowlake.model.merge import Action

if TYPE_CHECKING:
    from rowlake.model.view import TableView
    from rowlake.rowlevel.operation import RowChange


def validate_made(change: RowChange, view: TableView) -> None:
    """Refuse a change that writes rows and leaves columns to a table that cannot make them."""
    schema = view.schema.arrow
    writes = any(clause.action is not Action.DELETE for clause in change.clauses)
    made = [*generated_columns(schema), *identity_columns(schema)]
    if made and writes and not change.makes_columns:
        raise UnsupportedFeatureError(
            f"Cannot {change.verb} rows of {view.name} here: the table makes the values of "
            f"{', '.join(made)}. Use append, INSERT, UPDATE or MERGE. Nothing was written."
        )
    for clause in change.clauses:
        lacking = [
            found.name
            for found in schema
            if default_text(found) is not None and found.name not in clause.values
        ]
        if clause.action is Action.INSERT and lacking:
            raise UnsupportedFeatureError(
                f"Cannot {change.verb} rows of {view.name} here without {', '.join(lacking)}, "
                "whose default is an expression. Give the column. Nothing was written."
            )
