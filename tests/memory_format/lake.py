"""A lake of tables in memory: real `Table` objects over a `MemoryStore`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.commit.metadata import commit_metadata
from rowlake.connection import statements
from rowlake.engine.spark import Engine
from rowlake.lake import Lake
from rowlake.model.metadata_change import Redefine, TableDefinition
from rowlake.model.names import levels_of, quoted, table_levels
from rowlake.table import Table
from rowlake.verbs.create import already_there
from rowlake.workspace import Workspace
from tests.memory_format.format import MemoryFormat
from tests.memory_format.handle import MemoryHandle
from tests.memory_format.state import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.model.names import Name

_stores: dict[str, MemoryStore] = {}


def memory_lake(folder: str, engine: Engine | None = None) -> MemoryLake:
    """Return a lake of the tables of a folder; lakes of one folder share them."""
    return MemoryLake(_stores.setdefault(folder, MemoryStore(folder)), engine or Engine(None))


def has_stores() -> bool:
    """Return whether lakes were made since all was forgotten."""
    return bool(_stores)


def forget_stores() -> None:
    """Forget all tables."""
    _stores.clear()


class MemoryLake(Lake):
    """What suites need of a lake."""

    def __init__(self, store: MemoryStore, engine: Engine) -> None:
        super().__init__(Workspace(store, engine), statements)
        self.store = store

    def table(self, name: Name) -> Table:
        identifier = table_levels(name)
        handle = MemoryHandle(identifier, self.store, self.store.load(identifier))
        return Table(handle, self)

    def exists(self, name: Name) -> bool:
        return table_levels(name) in self.store.tables

    def tables(self, namespace: Name | None = None) -> list[str]:
        levels = None if namespace is None else levels_of(namespace)
        return sorted(quoted(one) for one in self.store.tables if levels in (None, one[:-1]))

    def create_table(
        self,
        name: Name,
        schema: Any,
        *,
        properties: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
        replace: bool = False,
        **layout: Any,
    ) -> Table:
        layout = {
            key: tuple(value) if key in ("partition_by", "sort_by") else value
            for key, value in layout.items()
        }
        definition = TableDefinition(schema, properties=dict(properties or {}), **layout)
        if self.exists(name):
            if not replace and not if_not_exists:
                raise already_there(table_levels(name))
            known = self.table(name)
            if replace:
                commit_metadata(known.handle, "REPLACE TABLE", Redefine(definition))
            return known
        handle = MemoryFormat(self.store).create(self.store, table_levels(name), definition)
        return Table(handle, self)

    def drop_table(self, name: Name, *, purge: bool = False, if_exists: bool = False) -> None:
        if if_exists and not self.exists(name):
            return
        handle = self.table(name).handle
        self.store.drop(table_levels(name))
        if purge:
            handle.storage.delete(one.location for one in handle.storage.list(handle.location))

    def create_namespace(
        self,
        name: Name,
        properties: Mapping[str, str] | None = None,
        *,
        if_not_exists: bool = False,
    ) -> None:
        self.store.create_namespace(levels_of(name), if_not_exists=if_not_exists)

    def namespaces(self) -> list[str]:
        return sorted(map(quoted, self.store.namespaces))
