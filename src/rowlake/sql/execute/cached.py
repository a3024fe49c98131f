"""CACHE, UNCACHE, REFRESH TABLE and CLEAR CACHE, on lake tables and on views over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.engine.session_rows import storage_level
from rowlake.errors import InvalidStatementError, TableNotFoundError
from rowlake.query.cached_rows import keep_rows, outdate_rows, table_versions, view_versions
from rowlake.query.lookup import TableLookup
from rowlake.query.run import run_query
from rowlake.sql import statements as s
from rowlake.sql.execute.views import create_temp_view
from rowlake.sqltext.lexer import quote, quote_parts, readable

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.sqltext.names import Name


def cache_table(lake: Lake, statement: s.CacheTable, text: str, args: Any) -> None:
    """CACHE TABLE: keep the rows in Spark's memory, at once or from their first use on."""
    if statement.query is not None:
        _cache_query(lake, statement, args)
        return
    lookup = TableLookup(lake.workspace)
    found = _lakes(lookup, statement.name)
    if found is None:
        run_query(lookup, text, args)
        return
    level = storage_level(statement.storage_level)
    key, is_view = found
    lake.workspace.session.forget_rows(key)
    frame = run_query(lookup, f"SELECT * FROM {quote_parts(statement.name)}")
    view = lookup.view(statement.name)
    if is_view and view is not None:
        versions = view_versions(lookup, view, list(lookup.loaded))
    else:
        versions = table_versions(lookup, [key])
    keep_rows(lake.workspace, key, frame, versions, level)
    if not statement.lazy:
        lake.workspace.session.cached[key].frame.count()


def _cache_query(lake: Lake, statement: s.CacheTable, args: Any) -> None:
    """CACHE TABLE v AS query: a temporary view, cached."""
    query = statement.query or ""
    text = f"CREATE TEMPORARY VIEW {quote_parts(statement.name)} AS {query}"
    create_temp_view(lake, s.CreateTempView(statement.name, query), text, args)
    lazy = "LAZY " if statement.lazy else ""
    level = statement.storage_level
    options = "" if level is None else f" OPTIONS ('storageLevel' = '{level}')"
    again = f"CACHE {lazy}TABLE {quote(statement.name[0])}{options}"
    cache_table(lake, s.CacheTable(statement.name, statement.lazy, level), again, None)


def uncache_table(lake: Lake, statement: s.UncacheTable, text: str, args: Any) -> None:
    """UNCACHE TABLE; a table that is not cached is left as it is."""
    lookup = TableLookup(lake.workspace)
    found = _lakes(lookup, statement.name)
    if found is not None:
        lake.workspace.session.forget_rows(found[0])
    elif not statement.if_exists or len(statement.name) == 1:
        run_query(lookup, text, args)


def clear_cache(lake: Lake, _statement: s.ClearCache, text: str, args: Any) -> None:
    """CLEAR CACHE: of lake tables and of all that Spark has."""
    for key in list(lake.workspace.session.cached):
        lake.workspace.session.forget_rows(key)
    if lake.engine.current_session is not None:
        run_query(TableLookup(lake.workspace), text, args)


def refresh_table(lake: Lake, statement: s.RefreshTable, text: str, args: Any) -> None:
    """REFRESH TABLE: have cached rows read again; metadata is new at each statement anyway."""
    lookup = TableLookup(lake.workspace)
    found = _lakes(lookup, statement.name)
    if found is None:
        run_query(lookup, text, args)
        return
    outdate_rows(lake.workspace.session, found[0])


def _lakes(lookup: TableLookup, name: Name) -> tuple[Name, bool] | None:
    """Return how cached rows of a table or view are known, and whether it is a view.

    None where it is Spark's.
    """
    view = lookup.view(name)
    if view is not None:
        return tuple(part.lower() for part in view.name), True
    target = lookup.target(name)
    if target is None:
        if len(name) > 1 and lookup.workspace.engine.current_session is None:
            raise TableNotFoundError(readable(name))
        return None
    if not target.is_current or target.branch:
        raise InvalidStatementError(
            f"Cannot cache {readable(name)}: only tables and views can be. Make a view of it."
        )
    handle = lookup.need(target.table)
    return tuple(handle.identifier), False
