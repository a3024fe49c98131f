"""Which table of the lake a name in a statement means, and what the session says of names.

A name is tried as it is, without the catalog's own name before it, and in the current namespace.
Spark's temporary views go before tables of the current namespace.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from rowlake.catalog.tables import load_table
from rowlake.errors import InvalidStatementError, TableNotFoundError
from rowlake.query.table_names import Target, locate
from rowlake.sqltext.lexer import readable
from rowlake.sqltext.names import Names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.schema import Schema
    from rowlake.sqltext.names import Name
    from rowlake.workspace import Workspace

_CASE_SENSITIVE = "spark.sql.caseSensitive"
_TIME_ZONE = "spark.sql.session.timeZone"


def setting(engine: Engine, key: str, default: str) -> str:
    """Return a setting of the Spark session, which is started where there is none."""
    return str(engine.spark.conf.get(key, default))


def names_of(engine: Engine) -> Names:
    """Return how the session compares names, and its time zone; starts a session."""
    sensitive = setting(engine, _CASE_SENSITIVE, "false").lower() == "true"
    return Names(sensitive, engine.time_zone or None)


def names_without_spark(engine: Engine) -> Names:
    """Return the same where a session is there; else Spark's default, and no time zone."""
    sensitive = (engine.setting(_CASE_SENSITIVE) or "false").lower() == "true"
    return Names(sensitive, engine.setting(_TIME_ZONE))


def candidates(workspace: Workspace, parts: Name) -> list[Name]:
    """Return the names in the catalog that a written name may mean, likeliest first."""
    found: list[Name] = []
    if len(parts) == 1:
        namespace = workspace.session.namespace
        return [(*namespace, *parts)] if namespace else []
    if len(parts) > 2 and parts[0].lower() == str(workspace.catalog.name).lower():
        found.append(parts[1:])
    if parts[0].lower() in ("spark_catalog", "global_temp"):
        return []
    return [parts, *found]


def new_name(workspace: Workspace, parts: Name) -> Name:
    """Return the full name that a table to be created gets."""
    names = candidates(workspace, parts)
    return names[-1] if names else parts


class TableLookup:
    """Finds lake tables by name for one statement.

    Each is loaded once, so that all references to one table in a statement see one snapshot; those
    `known` before are seen as they are known.
    """

    def __init__(self, workspace: Workspace, known: Iterable[TableHandle] = ()) -> None:
        self.workspace = workspace
        self._by_name: dict[Name, TableHandle | None] = {}
        self._loaded: dict[Name, TableHandle] = {tuple(one.identifier): one for one in known}

    @property
    def engine(self) -> Engine:
        """The engine of the workspace."""
        return self.workspace.engine

    @cached_property
    def names(self) -> Names:
        """How the session compares names, and its time zone."""
        return names_of(self.engine)

    def __call__(self, parts: Name) -> Schema | None:
        """Return the current schema of a table; None where it is not the lake's."""
        handle = self.handle(parts)
        return None if handle is None else handle.view().schema

    def handle(self, parts: Name) -> TableHandle | None:
        """Return a table's metadata by the name as written; None where it is not the lake's."""
        if parts not in self._by_name:
            hidden = len(parts) == 1 and self._is_temporary(parts[0])
            self._by_name[parts] = None if hidden else self.stored(parts)
        return self._by_name[parts]

    def stored(self, parts: Name) -> TableHandle | None:
        """Return a table's metadata, whatever temporary view hides it."""
        names = [parts] if parts in self._loaded else candidates(self.workspace, parts)
        for name in names:
            found = self._loaded.get(name) or self._load(name)
            if found is not None:
                return self._loaded.setdefault(tuple(found.identifier), found)
        return None

    def need(self, parts: Name) -> TableHandle:
        """Return a table's metadata, whatever temporary view hides it, or raise."""
        found = self.stored(parts)
        if found is not None:
            return found
        names = candidates(self.workspace, parts)
        if not names:
            raise TableNotFoundError(readable(parts))
        return load_table(self.workspace.catalog, names[0])

    def target(self, parts: Name) -> Target | None:
        """Return the table, branch, tag or metadata table that a name means."""
        return locate(parts, self)

    def on_branch(self, parts: Name, branch: str) -> Name:
        """Return the name under which the statement reads a branch of a table."""
        name = (*parts, f"branch_{branch}")
        self._by_name[name] = None  # no table of that name is looked for
        return name

    def at(self, handle: TableHandle) -> TableLookup:
        """Return a lookup with the same tables, one of them as it is in other metadata."""
        found = TableLookup(self.workspace)
        identifier = tuple(handle.identifier)
        found._loaded = {**self._loaded, identifier: handle}
        found._by_name = {
            name: None if one is None else found._loaded[tuple(one.identifier)]
            for name, one in self._by_name.items()
        }
        return found

    def _load(self, name: Name) -> TableHandle | None:
        try:
            return load_table(self.workspace.catalog, name)
        except (TableNotFoundError, InvalidStatementError):
            # A name that no lake table can have (a path, too many levels) may be one of Spark's.
            return None

    def _is_temporary(self, name: str) -> bool:
        if not self.workspace.session.namespace:
            return True
        return bool(self.workspace.spark.catalog.tableExists(name))
