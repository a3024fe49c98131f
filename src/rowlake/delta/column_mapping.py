"""Ids and physical names of columns (PROTOCOL.md, "Column Mapping").

Every field of a struct, at any depth, has an id and a physical name. New tables get random physical
names; a table that is switched to mapping keeps the names that its files have. Invariant: an id is
never given twice, so the highest one ever given is kept in the configuration.
"""

from __future__ import annotations

import copy
import uuid
from typing import TYPE_CHECKING, Any

from rowlake.delta.schema import COLUMN_ID, PHYSICAL_NAME
from rowlake.errors import InvalidStatementError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MODE = "delta.columnMapping.mode"
MOST_ID = "delta.columnMapping.maxColumnId"
MODES = ("none", "name", "id")


def mapping_mode(configuration: Mapping[str, str]) -> str:
    """Return the mode that a configuration asks for."""
    mode = str(configuration.get(MODE, "none")).lower()
    if mode not in MODES:
        raise InvalidStatementError(
            f"Cannot set {MODE}={mode[:40]}: expected one of: {', '.join(MODES)}."
        )
    return mode


def mapped(
    schema: Mapping[str, Any], configuration: Mapping[str, str], *, keeps_names: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a schema whose fields all have ids and physical names, and the new configuration.

    Fields that have them keep them. `keeps_names`: files exist that have the columns' own names.
    """
    made = copy.deepcopy(dict(schema))
    known = [int(one["metadata"][COLUMN_ID]) for one in fields_in(made) if _has_id(one)]
    last = max([int(configuration.get(MOST_ID, 0)), 0, *known])
    for one in fields_in(made):
        if _has_id(one):
            continue
        last += 1
        one["metadata"][COLUMN_ID] = last
        name = one["name"] if keeps_names else f"col-{uuid.uuid4()}"
        one["metadata"].setdefault(PHYSICAL_NAME, name)
    return made, {**configuration, MOST_ID: str(last)}


def fields_in(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the fields of all structs of a schema, parents before children."""
    pending: list[Any] = [schema]
    while pending:
        one = pending.pop(0)
        if not isinstance(one, dict):
            continue
        for field in one.get("fields") or ():
            yield field
            pending.append(field["type"])
        pending += [one.get(key) for key in ("elementType", "keyType", "valueType")]


def _has_id(field: Mapping[str, Any]) -> bool:
    return COLUMN_ID in field["metadata"]
