"""Which table of the lake a name in a statement means, and what the session says of names.

A name is tried as it is, without the catalog's own name before it, and in the current namespace.
Spark's temporary views go before tables of the current namespace.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from rowlake.catalog.formats import load_table
from rowlake.catalog.transaction import HoldingCatalog
from rowlake.catalog.views import keeps_views, load_view
from rowlake.engine.session_rows import is_still_shown
from rowlake.errors import InvalidStatementError, TableNotFoundError
from rowlake.query.table_names import Target, locate
from rowlake.sqltext.lexer import quote, quote_parts, readable
from rowlake.sqltext.names import NameRules
from rowlake.workspace import TextView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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


def names_of(engine: Engine) -> NameRules:
    """Return how the session compares names, and its time zone; starts a session."""
    sensitive = setting(engine, _CASE_SENSITIVE, "false").lower() == "true"
    return NameRules(sensitive, engine.time_zone or None)


def names_without_spark(engine: Engine) -> NameRules:
    """Return the same where a session is there; else Spark's default, and no time zone."""
    sensitive = (engine.setting(_CASE_SENSITIVE) or "false").lower() == "true"
    return NameRules(sensitive, engine.setting(_TIME_ZONE))


def candidates(workspace: Workspace, parts: Name) -> list[Name]:
    """Return the names in the catalog that a written name may mean, likeliest first."""
    found: list[Name] = []
    if len(parts) == 1:
        return [workspace.full_name(parts)]
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
    `known` before are seen as they are known. What the statement holds until its end is in
    `closing`.
    """

    def __init__(self, workspace: Workspace, known: Iterable[TableHandle] = ()) -> None:
        self.workspace = workspace
        self.closing = ExitStack()
        self._by_name: dict[Name, TableHandle | None] = {}
        self._views: dict[Name, TextView | None] = {}
        self._temporary: dict[str, bool] = {}
        self._loaded: dict[Name, TableHandle] = {tuple(one.identifier): one for one in known}

    @property
    def engine(self) -> Engine:
        """The engine of the workspace."""
        return self.workspace.engine

    @cached_property
    def names(self) -> NameRules:
        """How the session compares names, and its time zone."""
        return names_of(self.engine)

    def __call__(self, parts: Name) -> Schema | None:
        """Return the current schema of a table; None where it is not the lake's."""
        handle = self.handle(parts)
        return None if handle is None else handle.view().schema

    def handle(self, parts: Name) -> TableHandle | None:
        """Return a table's metadata by the name as written; None where it is not the lake's."""
        if parts not in self._by_name:
            hidden = len(parts) == 1 and self.is_temporary(parts[0])
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

    @property
    def loaded(self) -> Mapping[Name, TableHandle]:
        """The tables that the statement has loaded so far, by their full names."""
        return self._loaded

    @property
    def may_have_views(self) -> bool:
        """Return whether any name can mean a view over lake tables."""
        workspace = self.workspace
        return bool(workspace.session.views) or keeps_views(workspace.catalog)

    @property
    def views(self) -> list[TextView]:
        """The views that the statement has read so far."""
        return [view for view in self._views.values() if view is not None]

    def view(self, parts: Name) -> TextView | None:
        """Return the view over lake tables that a name means; None where it means anything else."""
        if parts not in self._views:
            self._views[parts] = self._temporary_view(parts) or self._stored_view(parts)
        return self._views[parts]

    def _temporary_view(self, parts: Name) -> TextView | None:
        key = tuple(part.lower() for part in parts)
        view = self.workspace.session.views.get(key)
        if view is None:
            return None
        if is_still_shown(self.workspace.spark, quote_parts(parts), view.shown, view.mark):
            return view
        self.workspace.session.views.pop(key, None)  # Spark's by now, or dropped
        return None

    def _stored_view(self, parts: Name) -> TextView | None:
        """Return a view of the catalog; tables and temporary views of the name go before it."""
        if not keeps_views(self.workspace.catalog) or self.target(parts) is not None:
            return None
        if len(parts) == 1 and self.is_temporary(parts[0]):
            return None
        for name in candidates(self.workspace, parts):
            found = load_view(self.workspace.catalog, name) if len(name) > 1 else None
            if found is not None:
                return TextView(name, found.query, found.columns, found.produced, found.namespace)
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
        return self.selected(parts, f"branch_{branch}")

    def selected(self, parts: Name, selector: str) -> Name:
        """Return the name of a table at a branch, tag or snapshot (`snapshot_id_7`)."""
        name = (*parts, selector)
        self._by_name[name] = None  # no table of that name is looked for
        return name

    def at(self, handle: TableHandle) -> TableLookup:
        """Return a lookup with the same tables, one of them as it is in other metadata."""
        found = TableLookup(self.workspace)
        found.closing = self.closing
        identifier = tuple(handle.identifier)
        found._loaded = {**self._loaded, identifier: handle}
        found._by_name = {
            name: None if one is None else found._loaded[tuple(one.identifier)]
            for name, one in self._by_name.items()
        }
        return found

    def again(self, handle: TableHandle) -> TableLookup:
        """Return a lookup for another run of the statement: the others are loaded again."""
        found = TableLookup(self.workspace, [handle])
        found.closing = self.closing
        return found

    def apart(self) -> TableLookup:
        """Return a lookup with the same tables, in a transaction that never lands."""
        holding = HoldingCatalog(self.workspace.catalog, self._loaded.values())
        known = [held.handle for held in holding.tables.values()]
        return TableLookup(self.workspace.over(holding), known)

    def _load(self, name: Name) -> TableHandle | None:
        try:
            return load_table(self.workspace.catalog, name)
        except (TableNotFoundError, InvalidStatementError):
            # A name that no lake table can have (a path, too many levels) may be one of Spark's.
            return None

    def is_temporary(self, name: str) -> bool:
        """Return whether the Spark session has a temporary view of this name."""
        if name not in self._temporary:
            self._temporary[name] = self._has_temporary(quote(name))
        return self._temporary[name]

    def _has_temporary(self, name: str) -> bool:
        session = self.engine.current_session
        if session is None or not session.catalog.tableExists(name):
            return False
        return bool(session.catalog.getTable(name).isTemporary)

    def leave(self, names: Iterable[str]) -> None:
        """Take some names for those of DataFrames, which no table or view has."""
        self._by_name.update({(name,): None for name in names})
        self._views.update({(name,): None for name in names})
