"""What statements on a lake depend on besides their text: the current namespace, Spark's settings.

Also how names resolve: a name is tried as it is, without the catalog's own name before it, and in
the current namespace. Spark's temporary views go before tables of the current namespace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from rowlake.errors import InvalidStatementError, TableNotFoundError
from rowlake.iceberg.metadata import view_of
from rowlake.query.table_names import Target, locate
from rowlake.sqltext.lexer import readable
from rowlake.sqltext.names import Names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowlake.catalog.handle import TableHandle
    from rowlake.lake import Lake
    from rowlake.model.schema import Schema
    from rowlake.sqltext.names import Name
    from rowlake.table import Table


@dataclass
class Session:
    """The state that USE changes."""

    namespace: tuple[str, ...] = ()


_sessions: WeakKeyDictionary[Any, Session] = WeakKeyDictionary()


def session_of(lake: Lake) -> Session:
    """Return the state of a lake's statements."""
    return _sessions.setdefault(lake, Session())


def share_session(lake: Lake, other: Lake) -> None:
    """Let statements on another lake have the state of this one's (those of a transaction)."""
    _sessions[other] = session_of(lake)


def setting(lake: Lake, key: str, default: str) -> str:
    """Return a setting of the Spark session."""
    value = lake.spark.conf.get(key, default)
    return str(value)


def names_of(lake: Lake) -> Names:
    """Return how the session compares names, and its time zone."""
    sensitive = setting(lake, "spark.sql.caseSensitive", "false").lower() == "true"
    zone = lake.engine.time_zone
    return Names(sensitive, zone or None)


def candidates(lake: Lake, parts: Name) -> list[Name]:
    """Return the names in the catalog that a written name may mean, likeliest first."""
    found: list[Name] = []
    if len(parts) == 1:
        namespace = session_of(lake).namespace
        return [(*namespace, *parts)] if namespace else []
    if len(parts) > 2 and parts[0].lower() == str(lake.catalog.name).lower():
        found.append(parts[1:])
    if parts[0].lower() in ("spark_catalog", "global_temp"):
        return []
    return [parts, *found]


def find_table(lake: Lake, parts: Name) -> Table | None:
    """Return the table that a written name means; None where it is not the lake's."""
    for name in candidates(lake, parts):
        found = _loaded(lake, name)
        if found is not None:
            return found
    return None


def _loaded(lake: Lake, name: Name) -> Table | None:
    try:
        return lake.table(name)
    except (TableNotFoundError, InvalidStatementError):
        # A name that no lake table can have (a path, too many levels) may be one of Spark's.
        return None


def need_table(lake: Lake, parts: Name) -> Table:
    """Return the table that a written name means, or raise."""
    names = candidates(lake, parts)
    for name in names[1:]:
        if lake.exists(name):
            return lake.table(name)
    if not names:
        raise TableNotFoundError(readable(parts))
    return lake.table(names[0])


def new_name(lake: Lake, parts: Name) -> Name:
    """Return the full name that a table to be made gets."""
    names = candidates(lake, parts)
    return names[-1] if names else parts


class Lookup:
    """Finds lake tables by name for one statement.

    Each is loaded once, so that all references to one table in a statement see one snapshot; those
    `known` before are seen as they are known.
    """

    def __init__(self, lake: Lake, known: Iterable[TableHandle] = ()) -> None:
        self.lake = lake
        self.handles: dict[Name, TableHandle | None] = {}
        self.loaded: dict[Name, TableHandle] = {tuple(one.identifier): one for one in known}

    def __call__(self, parts: Name) -> Schema | None:
        """Return the current schema of a table; None where it is not the lake's."""
        handle = self.handle(parts)
        return None if handle is None else view_of(handle).schema

    def handle(self, parts: Name) -> TableHandle | None:
        """Return a table's metadata by the name as written."""
        if parts not in self.handles:
            hidden = len(parts) == 1 and self._is_temporary(parts[0])
            table = None if hidden else find_table(self.lake, parts)
            self.handles[parts] = None if table is None else self._once(table)
        return self.handles[parts]

    def _once(self, table: Table) -> TableHandle:
        handle = table.handle
        return self.loaded.setdefault(tuple(handle.identifier), handle)

    def target(self, parts: Name) -> Target | None:
        """Return the table, branch, tag or metadata table that a name means."""
        return locate(parts, self)

    def _is_temporary(self, name: str) -> bool:
        if not session_of(self.lake).namespace:
            return True
        return bool(self.lake.spark.catalog.tableExists(name))
