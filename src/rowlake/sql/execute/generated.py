"""Generation expressions of new columns, tried by Spark before the table is created."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.dml.join_sides import refuse_random
from rowlake.errors import InvalidStatementError
from rowlake.query.refusals import told_plainly
from rowlake.sqltext.lexer import Lexer, quote
from rowlake.sqltext.spark_types import type_text
from rowlake.sqltext.types import ddl_text, parse_type

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.sqltext.types import Field

# What gives another value at another time, or to another user.
_UNSTEADY = frozenset(
    {
        *("CURRENT_DATE", "CURRENT_TIMESTAMP", "NOW", "LOCALTIMESTAMP", "CURDATE", "CURRENT_TIME"),
        *("CURRENT_USER", "USER", "SESSION_USER", "UNIX_TIMESTAMP", "CURRENT_TIMEZONE"),
        *("INPUT_FILE_NAME", "SELECT", "CURRENT_CATALOG", "CURRENT_DATABASE", "CURRENT_SCHEMA"),
    }
)


def validate_generated(lake: Lake, columns: tuple[Field, ...]) -> None:
    """Refuse expressions that Spark cannot evaluate over the other columns, or of another type."""
    made = [one for one in columns if one.generated is not None]
    if not made:
        return
    for one in made:
        _validate_steady(one)
    plain = [one for one in columns if one.generated is None]
    base = ", ".join(f"CAST(NULL AS {ddl_text(one.type)}) AS {quote(one.name)}" for one in plain)
    # Not by their own names: Spark would let one expression read another one.
    listed = ", ".join(f"({one.generated}) AS __made_{at}" for at, one in enumerate(made))
    question = f"SELECT {listed} FROM (SELECT {base or '1'})"
    with told_plainly(lake.workspace, question, moved=True):
        fields = lake.spark.sql(question).schema.fields
    for one, found in zip(made, fields, strict=True):
        kind = type_text(found.dataType, one.name)
        if parse_type(kind) != one.type:
            raise InvalidStatementError(
                f"Column {one.name} is {ddl_text(one.type)}, and its expression ({one.generated}) "
                f"is {kind}. Cast the expression."
            )


def _validate_steady(one: Field) -> None:
    text = one.generated or ""
    refuse_random(text, f"the expression of column {one.name}")
    words = {token.word for token in Lexer(text).all()}
    found = sorted(words & _UNSTEADY)
    if found:
        raise InvalidStatementError(
            f"Column {one.name} cannot be generated as ({text}): {found[0]} does not always give "
            "the same value."
        )
