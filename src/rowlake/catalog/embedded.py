"""The catalog of an embedded lake: a SQLite file inside the warehouse.

Any number of processes may use it. Its layout is PyIceberg's, so `load_catalog("rowlake",
uri="sqlite:///…/catalog.db", warehouse=…)` opens the same tables.

Look-ups are single SELECTs on the file. Changes go through PyIceberg's SqlCatalog, which is loaded
at the first of them: loading SQLAlchemy takes longer than all that a look-up does.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.typedef import EMPTY_DICT

from rowlake.iceberg._compat import without_code_of_tables
from rowlake.iceberg.metadata_checks import validate_commit
from rowlake.model.properties import validate_no_secrets

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyiceberg.catalog import PropertiesUpdateSummary
    from pyiceberg.schema import Schema
    from pyiceberg.table import CommitTableResponse, Table
    from pyiceberg.table.update import TableRequirement, TableUpdate
    from pyiceberg.typedef import Identifier, Properties
    from pyiceberg.view import View

    from rowlake.catalog.sqlite import SqliteCatalog

FILE_NAME = "catalog.db"
# How long a writer waits for others before it gives up; each holds the lock for milliseconds.
PATIENCE_SECONDS = 60
_TABLES = ("iceberg_tables", "iceberg_namespace_properties")
# Java's JdbcCatalog keeps views in the same table, in newer layouts with their kind.
_NO_VIEWS = " AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)"


def open_file(path: Path) -> sqlite3.Connection:
    """Open a SQLite file and wait for others that write it."""
    return sqlite3.connect(path, timeout=PATIENCE_SECONDS, check_same_thread=False)


class EmbeddedCatalog(MetastoreCatalog):
    """A catalog in a SQLite file at any path."""

    def __init__(self, name: str, path: Path, **properties: str) -> None:
        super().__init__(name, uri=f"sqlite:///{path}", **properties)
        self.path = path
        known = "SELECT count(*) FROM sqlite_master WHERE name IN (?, ?)"
        if self._select(known, *_TABLES) != [(len(_TABLES),)]:
            _ = self.whole

    @cached_property
    def whole(self) -> SqliteCatalog:
        """PyIceberg's catalog on the same file, which makes the changes."""
        from rowlake.catalog.sqlite import SqliteCatalog  # here, since it loads SQLAlchemy

        return SqliteCatalog(self.name, self.path, **self.properties)

    @property
    def engine(self) -> Any:
        """SQLAlchemy's engine."""
        return self.whole.engine

    def close(self) -> None:
        """Close what is open."""
        if "whole" in self.__dict__:
            self.whole.close()

    # -- look-ups -----------------------------------------------------------------------------

    def pointer(self, identifier: str | Identifier) -> str | None:
        """Return where the metadata of a table is; None where there is no such table."""
        levels = self.identifier_to_tuple(identifier)
        found = self._select(
            "SELECT metadata_location FROM iceberg_tables WHERE catalog_name = ? "
            f"AND table_namespace = ? AND table_name = ?{self._no_views}",
            self.name,
            ".".join(levels[:-1]),
            levels[-1],
        )
        return found[0][0] if found else None

    def pointers(self) -> list[str]:
        """Return where the metadata of all tables is."""
        query = "SELECT metadata_location FROM iceberg_tables WHERE catalog_name = ?"
        return [found for (found,) in self._select(query, self.name) if found]

    def table_exists(self, identifier: str | Identifier) -> bool:
        """Return whether there is such a table."""
        return self.pointer(identifier) is not None

    def list_tables(self, namespace: str | Identifier) -> list[Identifier]:
        """Return the tables of a namespace."""
        levels = self._existing(namespace)
        found = self._select(
            "SELECT table_name FROM iceberg_tables WHERE catalog_name = ? "
            f"AND table_namespace = ?{self._no_views} ORDER BY table_name",
            self.name,
            ".".join(levels),
        )
        return [(*levels, name) for (name,) in found]

    def namespace_exists(self, namespace: str | Identifier) -> bool:
        """Return whether there is such a namespace, with properties, tables or others below."""
        levels = self.identifier_to_tuple(namespace)
        return any(found[: len(levels)] == levels for found in self._namespaces())

    def list_namespaces(self, namespace: str | Identifier = ()) -> list[Identifier]:
        """Return the namespaces right below one."""
        levels = self._existing(namespace) if namespace else ()
        depth = len(levels) + 1
        below = {
            found[:depth]
            for found in self._namespaces()
            if len(found) >= depth and found[: depth - 1] == levels
        }
        return sorted(below)

    def load_namespace_properties(self, namespace: str | Identifier) -> Properties:
        """Return the properties of a namespace."""
        levels = self._existing(namespace)
        found = self._select(
            "SELECT property_key, property_value FROM iceberg_namespace_properties "
            "WHERE catalog_name = ? AND namespace = ?",
            self.name,
            ".".join(levels),
        )
        return dict(found)

    def _existing(self, namespace: str | Identifier) -> Identifier:
        if not self.namespace_exists(namespace):
            raise NoSuchNamespaceError(f"Namespace does not exist: {namespace}")
        return self.identifier_to_tuple(namespace)

    def _namespaces(self) -> set[Identifier]:
        found = self._select(
            "SELECT table_namespace FROM iceberg_tables WHERE catalog_name = ? "
            "UNION SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ?",
            self.name,
            self.name,
        )
        return {tuple(text.split(".")) for (text,) in found}

    @cached_property
    def _no_views(self) -> str:
        columns = self._select("SELECT name FROM pragma_table_info('iceberg_tables')")
        return _NO_VIEWS if ("iceberg_type",) in columns else ""

    def _select(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(open_file(self.path)) as connection:
            return connection.execute(query, values).fetchall()

    # -- changes, and what is made of a whole table -------------------------------------------

    def create_table(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> Table:
        """Create a table."""
        validate_no_secrets(properties)
        with without_code_of_tables(self):
            return self.whole.create_table(
                identifier, schema, location, partition_spec, sort_order, properties
            )

    def load_table(self, identifier: str | Identifier) -> Table:
        """Return a table as PyIceberg's object."""
        with without_code_of_tables(self):
            return self.whole.load_table(identifier)

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        """Commit updates to a table."""
        validate_commit(table, updates)
        with without_code_of_tables(self):
            return self.whole.commit_table(table, requirements, updates)

    def register_table(
        self, identifier: str | Identifier, metadata_location: str, overwrite: bool = False
    ) -> Table:
        """Add a table whose metadata file is there."""
        with without_code_of_tables(self):
            return self.whole.register_table(identifier, metadata_location, overwrite)

    def rename_table(
        self, from_identifier: str | Identifier, to_identifier: str | Identifier
    ) -> Table:
        """Give a table another name."""
        with without_code_of_tables(self):
            return self.whole.rename_table(from_identifier, to_identifier)

    def drop_table(self, identifier: str | Identifier) -> None:
        """Take a table out of the catalog; its files stay."""
        self.whole.drop_table(identifier)

    def create_namespace(
        self, namespace: str | Identifier, properties: Properties = EMPTY_DICT
    ) -> None:
        """Create a namespace."""
        self.whole.create_namespace(namespace, properties)

    def drop_namespace(self, namespace: str | Identifier) -> None:
        """Drop a namespace that has no tables."""
        self.whole.drop_namespace(namespace)

    def update_namespace_properties(
        self,
        namespace: str | Identifier,
        removals: set[str] | None = None,
        updates: Properties = EMPTY_DICT,
    ) -> PropertiesUpdateSummary:
        """Change the properties of a namespace."""
        return self.whole.update_namespace_properties(namespace, removals, updates)

    # -- views: PyIceberg's SqlCatalog has none yet, and says so ------------------------------

    def list_views(self, namespace: str | Identifier) -> list[Identifier]:
        """Return the views of a namespace."""
        return self.whole.list_views(namespace)

    def view_exists(self, identifier: str | Identifier) -> bool:
        """Return whether there is such a view."""
        return self.whole.view_exists(identifier)

    def load_view(self, identifier: str | Identifier) -> View:
        """Return a view."""
        return self.whole.load_view(identifier)

    def register_view(self, identifier: str | Identifier, metadata_location: str) -> View:
        """Add a view whose metadata file is there."""
        return self.whole.register_view(identifier, metadata_location)

    def drop_view(self, identifier: str | Identifier) -> None:
        """Drop a view."""
        self.whole.drop_view(identifier)
