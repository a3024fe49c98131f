"""`Lake`: what a user holds of a whole lake. Thin: every verb names its room.

Opening a lake, listing tables and reading metadata start no Spark session; the first statement or
frame that needs one does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from rowlake.catalog import tables as catalog_tables
from rowlake.deferred import deferred
from rowlake.engine.tally import says_where_it_ran
from rowlake.model.names import levels_of, quoted
from rowlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from rowlake import transaction
    from rowlake.engine.spark import Engine
    from rowlake.maintain.iceberg import purge as purging
    from rowlake.model import metadata_change
    from rowlake.model.partition import OrderBy, PartitionBy
    from rowlake.model.result import Result
    from rowlake.verbs import create, create_as, ingest_directory
    from rowlake.workspace import Workspace
else:  # loaded at their first use: opening a lake and listing its tables needs none
    (transaction,) = deferred("rowlake", "transaction")
    (metadata_change,) = deferred("rowlake.model", "metadata_change")
    (purging,) = deferred("rowlake.maintain.iceberg", "purge")
    create, create_as, ingest_directory = deferred(
        "rowlake.verbs", "create create_as ingest_directory"
    )

StatementRunner: TypeAlias = "Callable[[Lake, str, Any], Any]"


class Lake:
    """Tables in a catalog, and an engine to work on them."""

    def __init__(self, workspace: Workspace, run_statement: StatementRunner) -> None:
        self.workspace = workspace
        self._run_statement = run_statement

    def __enter__(self) -> Lake:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Lake({self.catalog.name})"

    @property
    def catalog(self) -> Any:
        """The catalog that the tables are in."""
        return self.workspace.catalog

    @property
    def engine(self) -> Engine:
        """What runs the work on the tables."""
        return self.workspace.engine

    @property
    def spark(self) -> Any:
        """The Spark session; made here at the first need."""
        return self.engine.spark

    def over(self, catalog: Any) -> Lake:
        """Return the same lake over another catalog, such as that of a transaction."""
        return Lake(self.workspace.over(catalog), self._run_statement)

    def close(self) -> None:
        """Close the catalog, and the Spark session if rowlake made it."""
        self.engine.close()
        self.catalog.close()

    def sql(self, statement: str, args: Any = None) -> Any:
        """Run a statement; see the README for those that rowlake runs itself."""
        return self._run_statement(self, statement, args)

    def transaction(self) -> transaction.Transaction:
        """Return a transaction: `with lake.transaction() as tx:` changes tables all or nothing.

        Tables taken from `tx` see its changes, others do not before the block is left; an error
        in the block undoes all. One table can be changed on any catalog, several on SQL catalogs
        and on REST catalogs with multi-table commits.
        """
        return transaction.Transaction(self)

    # ------------------------------------------------------------------ tables

    def table(self, name: str | tuple[str, ...]) -> Table:
        """Return a table by name (`ns.t`); it must exist."""
        return Table(catalog_tables.load_table(self.catalog, name), self)

    def exists(self, name: str | tuple[str, ...]) -> bool:
        """Return whether there is a table of this name."""
        return catalog_tables.table_exists(self.catalog, name)

    def tables(self, namespace: str | tuple[str, ...] | None = None) -> list[str]:
        """Return the names of the tables in a namespace, or in all of them."""
        return self.workspace.table_names(namespace)

    def create_table(
        self,
        name: str | tuple[str, ...],
        schema: Any,
        *,
        partition_by: Sequence[str | PartitionBy] = (),
        sort_by: Sequence[OrderBy] = (),
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        comment: str | None = None,
        if_not_exists: bool = False,
        replace: bool = False,
    ) -> Table:
        """Create a table in a namespace that exists.

        `schema` is a pyarrow schema, a PyIceberg schema, a Spark StructType, or anything that
        carries one (an Arrow table, a DataFrame, a pandas frame). `partition_by` takes texts like
        `"days(ts)"` or `"bucket(16, id)"`. `replace` keeps the history of a table of that name.
        """
        layout = metadata_change.TableDefinition(
            schema=schema,
            partition_by=tuple(partition_by),
            sort_by=tuple(sort_by),
            properties=dict(properties or {}),
            location=location,
            comment=comment,
        )
        handle = create.create_table(
            self.catalog,
            levels_of(name),
            layout,
            if_not_exists=if_not_exists,
            replace=replace,
        )
        return Table(handle, self)

    @says_where_it_ran
    def create_table_as(
        self,
        name: str | tuple[str, ...],
        rows: Any,
        layout: metadata_change.TableDefinition,
        *,
        replace: bool = False,
    ) -> Result:
        """Create (or replace) a table that holds these rows, in one commit."""
        identifier = levels_of(name)
        if not replace and self.exists(identifier):
            raise create.already_there(identifier)
        _, result = create_as.create_table_as(self.catalog, self.engine, identifier, layout, rows)
        return result

    def drop_table(
        self,
        name: str | tuple[str, ...],
        *,
        purge: bool = False,
        if_exists: bool = False,
        also_below: Sequence[str] | str | None = (),
    ) -> None:
        """Drop a table; `purge` deletes its files too.

        Files outside of the table's own folders are left and logged, but for those below the
        folders `also_below`.
        """
        if if_exists and not self.exists(name):
            return
        if purge:
            purging.drop_with_files(self.catalog, name, also_below=also_below)
        else:
            catalog_tables.drop_table(self.catalog, name)

    def rename_table(self, name: str | tuple[str, ...], to: str | tuple[str, ...]) -> Table:
        """Rename a table."""
        return Table(catalog_tables.rename_table(self.catalog, name, to), self)

    def register_table(self, name: str | tuple[str, ...], metadata_location: str) -> Table:
        """Add a table that exists in storage to the catalog, by its metadata file."""
        handle = catalog_tables.register_table(self.catalog, name, metadata_location)
        return Table(handle, self)

    @says_where_it_ran
    def snapshot_table(
        self,
        source: str,
        name: str | tuple[str, ...],
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        file_format: str | None = None,
    ) -> Result:
        """Create a table over the files of a plain directory, which stays as it is.

        Columns come from the files and from `key=value` folders; see `migrate` for in place.
        """
        _, result = ingest_directory.snapshot_table(
            self.catalog,
            self.engine,
            str(source),
            levels_of(name),
            location=location,
            properties=properties,
            file_format=file_format,
        )
        return result

    @says_where_it_ran
    def migrate(
        self,
        source: str,
        name: str | tuple[str, ...],
        *,
        properties: Mapping[str, str] | None = None,
        file_format: str | None = None,
    ) -> Result:
        """Make a plain directory of Parquet, ORC or Avro files a table, in place."""
        _, result = ingest_directory.migrate(
            self.catalog,
            self.engine,
            str(source),
            levels_of(name),
            properties=properties,
            file_format=file_format,
        )
        return result

    # ------------------------------------------------------------------ namespaces

    def namespaces(self) -> list[str]:
        """Return the names of all namespaces."""
        return sorted(quoted(found) for found in catalog_tables.all_namespaces(self.catalog))

    def create_namespace(
        self,
        name: str | tuple[str, ...],
        properties: Mapping[str, str] | None = None,
        *,
        if_not_exists: bool = False,
    ) -> None:
        """Create a namespace."""
        catalog_tables.create_namespace(
            self.catalog, name, dict(properties or {}), exist_ok=if_not_exists
        )

    def drop_namespace(self, name: str | tuple[str, ...], *, if_exists: bool = False) -> None:
        """Drop an empty namespace."""
        if not if_exists or catalog_tables.namespace_exists(self.catalog, name):
            catalog_tables.drop_namespace(self.catalog, name)
