"""The metadata of columns whose values a table makes (PROTOCOL.md, "Default Columns" and after)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.model.column_rules import (
    DEFAULT_TEXT,
    GENERATED_AS,
    IDENTITY,
    Identity,
    identity_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT, GENERATED = "CURRENT_DEFAULT", "delta.generationExpression"
START, STEP = "delta.identity.start", "delta.identity.step"
MARK, EXPLICIT = "delta.identity.highWaterMark", "delta.identity.allowExplicitInsert"
# What commitInfo says of a commit whose only change of the definition are high-water marks.
MARKS_ONLY = "delta.identity.schemaUpdate"


def rules_of_field(name: str, metadata: Mapping[str, Any]) -> dict[bytes, bytes]:
    """Return what the field of a schema carries; ValueError for what is none of Delta's."""
    found: dict[bytes, bytes] = {}
    for key, to in ((DEFAULT, DEFAULT_TEXT), (GENERATED, GENERATED_AS)):
        if key in metadata:
            found[to] = _expression(name, metadata[key])
    if START in metadata:
        found[IDENTITY] = identity_text(_identity(name, metadata))
    return found


def _expression(name: str, text: Any) -> bytes:
    if not isinstance(text, str):
        raise ValueError(f"column {name} has the expression {text!r}")
    return text.encode()


def _identity(name: str, metadata: Mapping[str, Any]) -> Identity:
    start, step, mark = metadata[START], metadata.get(STEP, 1), metadata.get(MARK)
    numbers = (start, step, *(() if mark is None else (mark,)))
    is_whole = all(isinstance(one, int) and -(2**63) <= one < 2**63 for one in numbers)
    if not is_whole or not step:
        raise ValueError(f"column {name} has the identity {start}, {step}, {mark}")
    return Identity(start, step, mark, metadata.get(EXPLICIT) is True)


def new_rules(
    default: str | None, generated: str | None, identity: Identity | None
) -> dict[str, Any]:
    """Return the metadata of a new column, in the order of Delta on Spark."""
    found: dict[str, Any] = {}
    if default is not None:
        found[DEFAULT] = default
    if generated is not None:
        found[GENERATED] = generated
    if identity is not None:
        found |= {EXPLICIT: identity.allows_explicit, START: identity.start, STEP: identity.step}
    return found


def with_marks(schema: Mapping[str, Any], marks: Mapping[str, int]) -> dict[str, Any]:
    """Return a schema whose identity columns have come further."""
    fields = [
        {**one, "metadata": {**one["metadata"], MARK: marks[one["name"]]}}
        if one["name"] in marks
        else one
        for one in schema["fields"]
    ]
    return {**schema, "fields": fields}


def without_marks(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema that does not say how far its identity columns have come."""
    fields = []
    for one in schema["fields"]:
        carried = {key: value for key, value in (one.get("metadata") or {}).items() if key != MARK}
        fields.append({**one, "metadata": carried})
    return {**schema, "fields": fields}
