"""Structs of a MERGE's source that lack fields of the target's.

`UPDATE SET *` sets the fields that the source has and keeps the others, `INSERT` leaves them null,
as Spark does with schema evolution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.sqltext.lexer import quote
from rowlake.sqltext.types import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.dml.assigned_columns import Path
    from rowlake.sqltext.names import NameRules
    from rowlake.sqltext.types import Field, Type


@dataclass(frozen=True)
class FieldValues:
    """The texts that set a column, or fields of it, by the path below the column.

    `structs` has the texts of the structs around them: where one is null, and the column's own is
    too, it stays null.
    """

    values: Mapping[Path, str]
    structs: Mapping[Path, str]


def field_values(text: str, given: Type, held: Type, names: NameRules) -> FieldValues:
    """Return one text for the whole column, unless its struct lacks fields of the column's."""
    if not _lacks_fields(given, held, names):
        return FieldValues({(): text}, {})
    assert isinstance(given, Struct)
    assert isinstance(held, Struct)
    values: dict[Path, str] = {}
    structs: dict[Path, str] = {(): text}
    for wanted in held.fields:
        match = _field(given, wanted.name, names)
        if match is not None:
            inner = f"{text}.{quote(match.name)}"
            below = field_values(inner, match.type, wanted.type, names)
            values |= {(wanted.name, *path): value for path, value in below.values.items()}
            structs |= {(wanted.name, *path): value for path, value in below.structs.items()}
    return FieldValues(values, structs)


def _lacks_fields(given: Type, held: Type, names: NameRules) -> bool:
    """Return whether a struct has only fields of another, but not all of them."""
    if not isinstance(given, Struct) or not isinstance(held, Struct):
        return False
    if any(_field(held, one.name, names) is None for one in given.fields):
        return False
    for wanted in held.fields:
        match = _field(given, wanted.name, names)
        if match is None or _lacks_fields(match.type, wanted.type, names):
            return True
    return False


def _field(of: Struct, name: str, names: NameRules) -> Field | None:
    return next((one for one in of.fields if names.same(one.name, name)), None)
