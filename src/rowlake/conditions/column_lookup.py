"""Find a column of a table by its path, and say what is near where there is none."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.conditions.comparisons import ComparedColumn
from rowlake.errors import InvalidStatementError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.model.schema import Schema
    from rowlake.sqltext.names import NameRules


def find_column(schema: Schema, path: tuple[str, ...], names: NameRules) -> ComparedColumn | None:
    """Return the column at a path through structs, in the table's own spelling."""
    fields, found = list(schema.arrow), []
    for index, name in enumerate(path):
        matches = names.matching(fields, name)
        if len(matches) != 1:
            return None
        found.append(matches[0])
        kind = matches[0].type
        if index + 1 < len(path):
            if not pa.types.is_struct(kind):
                return None
            fields = [kind.field(position) for position in range(kind.num_fields)]
    return ComparedColumn(tuple(field.name for field in found), found[-1], names.zone)


def no_such_column(
    path: Sequence[str], columns: Sequence[str], statement: str, position: int | None = None
) -> InvalidStatementError:
    """Return the error for a column that a table does not have, with near names."""
    known = {name.lower(): name for name in columns}
    near = [known[found] for found in get_close_matches(path[0].lower(), known, n=3, cutoff=0.5)]
    hint = f"Did you mean {shown(near)}?" if near else f"There are: {shown(list(columns))}."
    return InvalidStatementError(
        f"There is no column {'.'.join(path)}. {hint}", statement=statement, position=position
    )
