"""Rows that CACHE TABLE keeps: read from Spark's memory as long as their tables are unchanged.

Every statement loads the metadata of its tables, so that no commit goes unnoticed, whoever made
it: cached rows of other metadata are read again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rowlake.engine.session_rows import held_in_spark
from rowlake.workspace import CachedRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rowlake.model.handle import TableHandle
    from rowlake.query.lookup import TableLookup
    from rowlake.sqltext.names import Name
    from rowlake.workspace import SessionState, TextView, Workspace


_OUTDATED = object()  # equal to no metadata


def table_versions(lookup: TableLookup, names: Iterable[Name]) -> dict[Name, Any]:
    """Return the metadata that tables have now; None for those that are gone."""
    found = {name: lookup.stored(name) for name in names}
    return {name: None if one is None else one.version for name, one in found.items()}


def view_versions(lookup: TableLookup, view: TextView, tables: Iterable[Name]) -> dict[Name, Any]:
    """Return what the rows of a view depend on: its text, and the metadata of its tables."""
    return {**table_versions(lookup, tables), (): (view.query, view.columns)}


def keep_rows(
    workspace: Workspace, key: Name, frame: Any, versions: Mapping[Name, Any], level: Any = None
) -> None:
    """Keep rows in Spark's memory from their first use on."""
    workspace.session.forget_rows(key)
    held = held_in_spark(frame, level)
    workspace.session.cached[key] = CachedRows(held, versions, workspace.catalog, level)


def outdate_rows(session: SessionState, key: Name) -> None:
    """Have the rows of a table or view read again at their next use."""
    held = session.cached.get(key)
    if held is not None:
        session.cached[key] = replace(held, versions=dict.fromkeys(held.versions, _OUTDATED))


def outdate_views(session: SessionState) -> None:
    """Have the rows of cached views read again: a view that they read may be another one now."""
    for key, held in list(session.cached.items()):
        if () in held.versions:
            outdate_rows(session, key)


def cached_table(lookup: TableLookup, handle: TableHandle, read: Callable[[], Any]) -> Any:
    """Return the cached rows of a table; None where there are none of this metadata.

    `read` gives the rows that take their place where the table has been changed since.
    """
    key = tuple(handle.identifier)
    held = _usable(lookup, key)
    if held is None or handle.is_in_transaction or handle.is_staged:
        return None
    return _current(lookup, key, held, {key: handle.version}, read)


def cached_view(lookup: TableLookup, view: TextView, read: Callable[[], Any]) -> Any:
    """Return the cached rows of a view; None where there are none."""
    key = tuple(part.lower() for part in view.name)
    held = _usable(lookup, key)
    if held is None:
        return None
    tables = [name for name in held.versions if name]
    return _current(lookup, key, held, view_versions(lookup, view, tables), read)


def _usable(lookup: TableLookup, key: Name) -> CachedRows | None:
    held = lookup.workspace.session.cached.get(key)
    # A transaction sees changes that nobody else does, on a catalog of its own.
    return held if held is not None and held.catalog is lookup.workspace.catalog else None


def _current(
    lookup: TableLookup,
    key: Name,
    held: CachedRows,
    versions: Mapping[Name, Any],
    read: Callable[[], Any],
) -> Any:
    if held.versions == versions:
        return held.frame
    keep_rows(lookup.workspace, key, read(), versions, held.level)
    return lookup.workspace.session.cached[key].frame
