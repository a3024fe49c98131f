"""A condition all of which is a predicate: for verbs that choose files or rows without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.conditions.column_lookup import no_such_column
from rowlake.conditions.pushed import pushed_condition, unknown_columns
from rowlake.errors import InvalidStatementError
from rowlake.prune.bind import bind

if TYPE_CHECKING:
    from rowlake.model.predicate import Predicate
    from rowlake.model.schema import Schema


def whole_condition(
    where: str | Predicate, schema: Schema, cannot: str, instead: str = ""
) -> Predicate:
    """Return a bound predicate that says all that the text says.

    Else an error begins with `cannot` ("Cannot erase rows of t") and ends with what to do instead.
    """
    if not isinstance(where, str):
        return bind(where, schema)
    pushed = pushed_condition(where, schema)
    if not pushed.exact:
        for path in unknown_columns(where, schema):
            raise no_such_column(path, schema.arrow.names, where)
        raise InvalidStatementError(
            f"{cannot} where {where}: the filter must compare columns with literals.{instead}"
        )
    return bind(pushed.predicate, schema)
