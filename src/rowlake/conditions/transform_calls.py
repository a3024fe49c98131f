"""Iceberg's partition transforms as functions: `system.bucket(16, id)`, `system.days(ts)`, ….

They may stand with the name of a catalog before them. `bucket` and `truncate` take the number
first; it is a literal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.conditions.token_groups import column_path, is_one_bracket, split_commas, unwrapped
from rowlake.errors import InvalidStatementError
from rowlake.model.schema import type_name
from rowlake.model.transform import result_type
from rowlake.sqltext.lexer import TokenKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.conditions.comparisons import ComparedColumn
    from rowlake.sqltext.lexer import Token

SYSTEM = "system"
UNARY = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
WITH_NUMBER = ("bucket", "truncate")


@dataclass(frozen=True)
class TransformCall:
    """One call: the transform in the spec's text form, and the tokens of what it is of."""

    transform: str
    argument: Sequence[Token]


def transform_call(tokens: Sequence[Token]) -> TransformCall | None:
    """Return the call that the tokens are; None for anything else."""
    at = next((place for place, token in enumerate(tokens) if token.text == "("), None)
    if at is None or not is_one_bracket(tokens[at:]):
        return None
    path = column_path(tokens[:at])
    if path is None or len(path) not in (2, 3) or path[-2].lower() != SYSTEM:
        return None
    name, arguments = path[-1].lower(), split_commas(tokens[at + 1 : -1])
    if name in UNARY and len(arguments) == 1:
        return TransformCall(UNARY[name], arguments[0])
    if name in WITH_NUMBER and len(arguments) == 2:
        width = _width(arguments[0])
        return None if width is None else TransformCall(f"{name}[{width}]", arguments[1])
    return None


def _width(tokens: Sequence[Token]) -> int | None:
    inner = unwrapped(tokens)
    if len(inner) != 1 or inner[0].kind is not TokenKind.NUMBER or not inner[0].text.isdecimal():
        return None
    width = int(inner[0].text)
    return width if 0 < width < 2**31 else None


def transformed(column: ComparedColumn, transform: str) -> ComparedColumn | None:
    """Return a transform of a column; None where Spark's function means another value.

    Spark sees uuids as text, and knows no nanoseconds and no times of day.
    """
    kind = column.field.type
    strange = pa.types.is_time(kind) or (pa.types.is_timestamp(kind) and kind.unit != "us")
    if column.transform is not None or type_name(column.field) is not None or strange:
        return None
    try:
        made = result_type(transform, kind)
    except InvalidStatementError:
        return None
    return replace(column, field=pa.field(column.field.name, made), transform=transform)
