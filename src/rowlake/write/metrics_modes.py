"""Which metrics are kept of which column: none, counts, truncate(n) or full.

Comes in: table properties, schema, sort order. Goes out: a mode for each leaf column's field id.
The rules are Iceberg's (`write.metadata.metrics.*`): the default is truncate(16) for all columns
of a narrow table and for the first 100 of a wide one; columns of the sort order keep bounds
whatever the default; a column's own property wins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError
from rowlake.model.properties import whole_number
from rowlake.model.schema import children, field_id
from rowlake.model.transform import parse_transform
from rowlake.write.properties import by_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from rowlake.model.partition import SortOrder
    from rowlake.model.schema import Schema

PREFIX = "write.metadata.metrics."
MAX_INFERRED = 100
_TRUNCATE = re.compile(r"truncate\((\d+)\)")


@dataclass(frozen=True)
class MetricsMode:
    """What is kept of one column; `length` limits the bounds of text and bytes (None: whole)."""

    counts: bool = True
    bounds: bool = True
    length: int | None = None


NONE = MetricsMode(counts=False, bounds=False)
COUNTS = MetricsMode(bounds=False)
FULL = MetricsMode()
TRUNCATE_16 = MetricsMode(length=16)


def parse_mode(text: str, name: str) -> MetricsMode:
    """Return the mode that a property's value names."""
    wanted = text.strip().lower()
    if wanted in ("none", "counts", "full"):
        return {"none": NONE, "counts": COUNTS, "full": FULL}[wanted]
    found = _TRUNCATE.fullmatch(wanted)
    if found and int(found[1]) > 0:
        return MetricsMode(length=int(found[1]))
    raise InvalidStatementError(
        f"Cannot write with table property {name}={text}: "
        f"expected none, counts, truncate(length) or full."
    )


def metrics_modes(
    properties: Mapping[str, str], schema: Schema, order: SortOrder | None
) -> dict[int, MetricsMode]:
    """Return the mode of every leaf column, by field id."""
    leaves = list(_leaves(list(schema.arrow)))
    modes, default = _default_modes(properties, schema, leaves)
    sorted_default = TRUNCATE_16 if default in (NONE, COUNTS) else default
    for key in order.fields if order else ():
        if parse_transform(key.transform).keeps_order:
            modes[key.source_id] = sorted_default
    own = by_column(properties, f"{PREFIX}column.")
    if own:
        by_name = {".".join(schema.paths[leaf]): leaf for leaf in leaves}
        for column, text in own.items():
            mode = parse_mode(text, f"{PREFIX}column.{column}")
            if column in by_name:
                modes[by_name[column]] = mode
    return {leaf: modes.get(leaf, default) for leaf in leaves}


def _default_modes(
    properties: Mapping[str, str], schema: Schema, leaves: list[int]
) -> tuple[dict[int, MetricsMode], MetricsMode]:
    configured = properties.get(f"{PREFIX}default")
    if configured is not None:
        return {}, parse_mode(configured, f"{PREFIX}default")
    most = whole_number(properties, f"{PREFIX}max-inferred-column-defaults", MAX_INFERRED, least=0)
    if len(schema.by_id) <= most:
        return {}, TRUNCATE_16
    return dict.fromkeys(leaves[:most], TRUNCATE_16), NONE


def _leaves(fields: list[pa.Field]) -> Iterator[int]:
    """Yield leaf ids, the leaves of a level before those below it (the order of Java's limit)."""
    for found in fields:
        if not children(found.type):
            yield field_id(found)  # type: ignore[misc]
    for found in fields:
        if children(found.type):
            yield from _leaves(children(found.type))
