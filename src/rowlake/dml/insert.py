"""append, overwrite, truncate: rows in, for `Table` and for INSERT alike.

Comes in: a table handle, an engine and the options as callers give them. Goes out: the table after
the write, with the maintenance that its properties ask for, and a `Result`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.dml.options import for_write
from rowlake.dml.python_arguments import condition_of
from rowlake.maintain.autopilot.auto import tidied
from rowlake.query.row_condition import whole_condition
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
    done = write.is_done(handle, chosen, "append")
    if done is not None:
        return handle, done
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
    done = write.is_done(handle, chosen, "overwrite")
    if done is not None:
        return handle, done
    predicate = None if where is None else _replaced(handle, engine, where, chosen)
    landed, result = write.overwrite(handle, engine, rows, chosen, where=predicate, dynamic=dynamic)
    return tidied(landed, engine, result), result


def _replaced(
    handle: TableHandle, engine: Engine, where: str | Predicate, options: write.WriteOptions
) -> Predicate:
    """Return which rows an overwrite replaces."""
    if isinstance(where, str):
        where = condition_of(where, "where") or ""
    view = write.view_for_write(handle, options.branch)
    advice = " Use DELETE and append for anything else."
    return whole_condition(engine, handle, view.schema, where, "overwrite", advice)


def truncate_rows(
    handle: TableHandle, engine: Engine, options: Mapping[str, Any]
) -> tuple[TableHandle, Result]:
    """Remove all rows; metadata only."""
    handle, chosen = for_write(handle, engine, options)
    done = write.is_done(handle, chosen, "truncate")
    if done is not None:
        return handle, done
    landed, result = write.truncate(handle, chosen)
    return tidied(landed, engine, result), result
