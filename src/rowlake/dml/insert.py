"""append, overwrite, truncate: rows in, for `Table` and for INSERT alike.

Comes in: a table handle, an engine and the options as callers give them. Goes out: the table after
the write, with the maintenance that its properties ask for, and a `Result`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.conditions.whole import whole_condition
from rowlake.dml.options import for_write
from rowlake.maintain.autopilot.auto import tidied
from rowlake.verbs import write

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.result import Result


def append_rows(
    handle: TableHandle, engine: Engine, rows: Any, options: Mapping[str, Any]
) -> tuple[TableHandle, Result]:
    """Add rows."""
    handle, chosen = for_write(handle, engine, options)
    landed, result = write.append(handle, engine, rows, chosen)
    return tidied(landed, engine, result), result


def overwrite_rows(
    handle: TableHandle,
    engine: Engine,
    rows: Any,
    options: Mapping[str, Any],
    *,
    where: str | Predicate | None = None,
    dynamic: bool = False,
) -> tuple[TableHandle, Result]:
    """Replace all rows, those that a filter selects, or (dynamic) the partitions hit."""
    handle, chosen = for_write(handle, engine, options)
    predicate = (
        None
        if where is None
        else whole_condition(
            where,
            handle.view().schema,
            f"Cannot overwrite {handle.name}",
            " Use DELETE and append for anything else.",
        )
    )
    landed, result = write.overwrite(handle, engine, rows, chosen, where=predicate, dynamic=dynamic)
    return tidied(landed, engine, result), result


def truncate_rows(
    handle: TableHandle, engine: Engine, options: Mapping[str, Any]
) -> tuple[TableHandle, Result]:
    """Remove all rows; metadata only."""
    handle, chosen = for_write(handle, engine, options)
    landed, result = write.truncate(handle, chosen)
    return tidied(landed, engine, result), result
