"""`Table.changes`: a change feed as users ask for it.

Comes in: snapshots, times and a condition, as users write them. Goes out: a DataFrame. What of a
condition can be said as a predicate prunes files and rows; Spark evaluates all of it on what comes
out, so updates keep their types where only one of their images matches.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rowlake.conditions import pushed
from rowlake.model.feed import CHANGE_COLUMNS, Bounds
from rowlake.query import refusals
from rowlake.stream.changes import ChangesRequest, arrow, frame
from rowlake.stream.changes_span import end_view
from rowlake.times import to_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate

__all__ = ["ChangesRequest", "arrow", "bounds_of", "changes", "pushed_changes"]


def bounds_of(
    start: int | None, end: int | None, start_as_of: Any, end_as_of: Any, branch: str
) -> Bounds:
    """Return where a feed starts and ends; times as users write them."""
    return Bounds(
        start,
        end,
        None if start_as_of is None else to_ms(start_as_of),
        None if end_as_of is None else to_ms(end_as_of),
        branch,
    )


def pushed_changes(
    handle: TableHandle,
    engine: Engine,
    bounds: Bounds,
    columns: Sequence[str] | None,
    predicate: Predicate,
) -> Any:
    """Return changes for a statement that evaluates its conditions itself."""
    return frame(handle, engine, ChangesRequest(bounds, columns=columns, predicate=predicate))


def changes(
    handle: TableHandle, engine: Engine, asked: ChangesRequest, where: str | Predicate | None
) -> Any:
    """Return the changes for which a condition is TRUE as a Spark DataFrame."""
    if not isinstance(where, str):
        return frame(handle, engine, replace(asked, predicate=where, exact=where is not None))
    schema = end_view(handle, asked.bounds).schema
    names = schema.arrow.names if asked.columns is None else list(asked.columns)
    shown = [name for name in names if name not in CHANGE_COLUMNS]
    needed = list(dict.fromkeys([*shown, *pushed.columns_in(where, schema)]))
    said = pushed.pushed_condition(where, schema, zone=engine.time_zone)
    found = frame(handle, engine, replace(asked, columns=needed, predicate=said.predicate))
    columns = [*schema.arrow.names, *CHANGE_COLUMNS]
    with refusals.told_plainly(None, where, moved=True, columns=columns):
        found = found.where(where)
    output = [*shown, *CHANGE_COLUMNS]
    return found.select(*[found[f"`{name.replace('`', '``')}`"] for name in output])
