"""`ns.t.changes` and `table_changes('ns.t', start[, end])` in a FROM clause.

Comes in: tokens of the arguments; then what a statement needs of a feed. Goes out: which feed is
meant, its columns, and what of a condition may be pushed into it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.conditions.token_groups import split_commas
from rowlake.model.feed import CHANGE_COLUMNS, CHANGE_FIELDS
from rowlake.model.names import levels_of
from rowlake.model.predicate import TRUE, And, conjunction, leaves
from rowlake.model.schema import Schema
from rowlake.sqltext.literals import literal_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.model.predicate import Predicate
    from rowlake.sqltext.lexer import Token

CHANGES = "changes"
_MOST_ARGUMENTS = 3


@dataclass(frozen=True)
class ChangeArguments:
    """The name of a table's feed, and the texts of where it starts and ends."""

    table: tuple[str, ...]
    span: tuple[str, ...]


def change_arguments(tokens: Sequence[Token], text: str) -> ChangeArguments | None:
    """Return the arguments of `table_changes`; None where they are not a name and a span."""
    first, *rest = split_commas(tokens)
    name = literal_of(list(first), {})
    if name is None or name.kind != "string" or len(rest) >= _MOST_ARGUMENTS:
        return None
    span = tuple(text[each[0].start : each[-1].end] for each in rest if each)
    return ChangeArguments((*levels_of(str(name.value)), CHANGES), span)


def feed_schema(schema: Schema) -> Schema:
    """Return the columns of a feed: the table's, then those that describe the change."""
    fields = pa.schema([*schema.arrow, *CHANGE_FIELDS])
    return Schema(fields, schema.schema_id, schema.identifier_field_ids)


def on_table(predicate: Predicate | None) -> Predicate:
    """Return what of a predicate is about the table's own columns."""
    if predicate is None:
        return TRUE
    parts = predicate.parts if isinstance(predicate, And) else (predicate,)
    own = [
        part for part in parts if all(leaf.path[0] not in CHANGE_COLUMNS for leaf in leaves(part))
    ]
    return conjunction(*own) if own else TRUE
