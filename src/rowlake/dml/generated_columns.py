"""Generated columns of rows that a statement changes: which are computed again, and from what.

A statement that sets a column which an expression reads makes the generated column too, from the
new values; one that sets the generated column itself has its value checked. Spark does both after
it has evaluated all that the statement sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.dml.assigned_columns import Assigned
from rowlake.errors import InvalidStatementError
from rowlake.model.column_rules import generated_columns, identity_columns
from rowlake.sqltext.lexer import quote
from rowlake.verbs.made_columns import bases_of, made_values

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rowlake.conditions.store_assignment import TargetColumn
    from rowlake.dml.target import RowTarget


def made_by(found: Sequence[Assigned], target: RowTarget) -> dict[str, list[str]]:
    """Return the generated columns that an UPDATE makes or checks, and what each is made from."""
    _refuse_identity(found, target)
    names = {each.column.name for each in found}
    schema = target.view.schema
    texts = generated_columns(schema.arrow)
    bases = {name: bases_of(text, schema) for name, text in texts.items()}
    return {name: read for name, read in bases.items() if names & {name, *read}}


def _refuse_identity(found: Sequence[Assigned], target: RowTarget) -> None:
    identities = identity_columns(target.view.schema.arrow)
    for each in found:
        if each.column.name in identities:
            raise InvalidStatementError(
                f"Cannot update {each.column.name} of {target.view.name}: it is an identity column."
            )


def unset_bases(
    made: dict[str, list[str]], found: Sequence[Assigned], target: RowTarget
) -> list[Assigned]:
    """Return the columns that generated ones read and the statement leaves, set to themselves."""
    names = {each.column.name for each in found}
    wanted = {base for read in made.values() for base in read} - names
    return [
        Assigned(column, {(): f"{quote(target.visible)}.{quote(column.name)}"})
        for column in target.columns
        if column.name in wanted
    ]


def texts_of(target: RowTarget, given: Collection[str]) -> dict[str, str]:
    """Return the SQL texts of all generated columns, over new values by the columns' names."""
    columns: dict[str, TargetColumn] = {column.name: column for column in target.columns}
    return made_values(target.view.schema, columns, given)
