"""`Lake`: what a user holds of a whole lake. Thin: every verb names its room.

Opening a lake, listing tables and reading metadata start no Spark session; the first statement or
frame that needs one does.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from rowlake.catalog import formats
from rowlake.catalog import tables as catalog_tables
from rowlake.deferred import deferred
from rowlake.engine.tally import says_where_it_ran
from rowlake.model.following import follow_with
from rowlake.model.mirror import MIRROR
from rowlake.model.names import quoted
from rowlake.model.partition import PartitionBy
from rowlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from rowlake import transaction
    from rowlake.engine.spark import Engine
    from rowlake.maintain.delta import convert as parquet_converting
    from rowlake.maintain.iceberg import purge as purging
    from rowlake.mirror import convert as converting
    from rowlake.mirror import follow as following
    from rowlake.model import metadata_change
    from rowlake.model.handle import TableHandle
    from rowlake.model.partition import OrderBy
    from rowlake.model.result import Result
    from rowlake.stream import feed
    from rowlake.stream import source_options as stream_options
    from rowlake.verbs import create, create_as, ingest_directory, overview
    from rowlake.workspace import Workspace
else:  # loaded at their first use: opening a lake and listing its tables needs none
    (transaction,) = deferred("rowlake", "transaction")
    (metadata_change,) = deferred("rowlake.model", "metadata_change")
    (parquet_converting,) = deferred("rowlake.maintain.delta", "convert")
    (purging,) = deferred("rowlake.maintain.iceberg", "purge")
    converting, following = deferred("rowlake.mirror", "convert follow")
    feed, stream_options = deferred("rowlake.stream", "feed source_options")
    create, create_as, ingest_directory, overview = deferred(
        "rowlake.verbs", "create create_as ingest_directory overview"
    )


class Statements(Protocol):
    """What runs SQL on a lake: `rowlake.sql.execute.statement`, a room above this one."""

    def execute(self, lake: Lake, statement: str, arguments: Any, /) -> Any:
        """Run one statement."""


def _read_changes(*asked: Any) -> Any:
    return feed.pushed_changes(*asked)


def _follow(handle: TableHandle) -> None:
    """Bring the mirror of a table forward; what does it is loaded where there is one."""
    if MIRROR in handle.properties:
        following.follow(handle)


follow_with(MIRROR, _follow)


def _paths(columns: str | Sequence[str | tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Return columns as paths of names; texts are dotted."""
    every = (columns,) if isinstance(columns, str) else columns
    return tuple(tuple(one.split(".")) if isinstance(one, str) else one for one in every)


def _all_of(
    given: str | PartitionBy | Sequence[str | PartitionBy],
) -> tuple[str | PartitionBy, ...]:
    return (given,) if isinstance(given, (str, PartitionBy)) else tuple(given)


class Lake:
    """Tables in a catalog, and an engine to work on them."""

    def __init__(self, workspace: Workspace, statements: Statements) -> None:
        self.workspace = replace(workspace, feeds=_read_changes)
        self._statements = statements
        self._on_detach: list[Callable[[], None]] = []

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

    def _repr_html_(self) -> str:
        return overview.lake_html(self.catalog, self.tables())

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
        return Lake(self.workspace.over(catalog), self._statements)

    def in_session(self, spark: Any) -> Lake:
        """Return the same lake for another Spark session, such as that of a stream's batches."""
        return Lake(self.workspace.in_session(spark), self._statements)

    def detach(self) -> None:
        """Undo `rowlake.attach`: Spark's own API knows nothing of the lake any more.

        Nothing happens where the lake is not attached. The lake stays open.
        """
        while self._on_detach:
            self._on_detach.pop()()

    def on_detach(self, undo: Callable[[], None]) -> None:
        """Have something undone when the lake is detached or closed."""
        self._on_detach.append(undo)

    def close(self) -> None:
        """Close the catalog, and the Spark session if rowlake made it; detach the lake."""
        self.detach()
        if self.engine.has_session:
            for key in list(self.workspace.session.cached):
                with suppress(Exception):  # the user may have stopped the session
                    self.workspace.session.forget_rows(key)
        self.engine.close()
        self.catalog.close()

    def sql(self, statement: str, args: Any = None) -> Any:
        """Run a statement; see the README for those that rowlake runs itself."""
        return self._statements.execute(self, statement, args)

    def transaction(self) -> transaction.Transaction:
        """Return a transaction: `with lake.transaction() as tx:` changes tables all or nothing.

        Tables taken from `tx` see its changes, others do not before the block is left; an error
        in the block undoes all. One table can be changed on any catalog, several on SQL catalogs
        and on REST catalogs with multi-table commits.
        """
        return transaction.Transaction(self)

    # ------------------------------------------------------------------ tables

    def table(self, name: str | tuple[str, ...]) -> Table:
        """Return a table by name; it must exist.

        `ns.t`, or `t` for a table of the current namespace (USE), which is `default` at first.
        """
        return Table(formats.load_table(self.catalog, self.workspace.full_name(name)), self)

    def exists(self, name: str | tuple[str, ...]) -> bool:
        """Return whether there is a table of this name."""
        return formats.table_exists(self.catalog, self.workspace.full_name(name))

    def tables(self, namespace: str | tuple[str, ...] | None = None) -> list[str]:
        """Return the names of the tables in a namespace, or in all of them."""
        return self.workspace.table_names(namespace)

    def create_table(
        self,
        name: str | tuple[str, ...],
        schema: Any,
        *,
        partition_by: str | PartitionBy | Sequence[str | PartitionBy] = (),
        sort_by: Sequence[OrderBy] = (),
        cluster_by: str | Sequence[str | tuple[str, ...]] = (),
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        comment: str | None = None,
        format: str = "",
        if_not_exists: bool = False,
        replace: bool = False,
    ) -> Table:
        """Create a table in a namespace that exists.

        `schema` is a pyarrow schema, a PyIceberg schema, a Spark StructType, anything that carries
        one (an Arrow table, a Spark, pandas or polars frame), a dict of names to types
        (`{"id": "bigint"}`), or a text (`"id BIGINT NOT NULL, name STRING"`). `partition_by` takes
        texts like `"days(ts)"` or `"bucket(16, id)"`, one or several. `format` is `"iceberg"` or
        `"delta"`. `cluster_by` names the columns that OPTIMIZE clusters a Delta table by. `replace`
        keeps the history of a table of that name.
        """
        layout = metadata_change.TableDefinition(
            schema=schema,
            partition_by=_all_of(partition_by),
            sort_by=tuple(sort_by),
            cluster_by=_paths(cluster_by),
            properties=dict(properties or {}),
            location=location,
            comment=comment,
            format=format,
        )
        handle = create.create_table(
            self.catalog,
            self.workspace.full_name(name),
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
        layout: metadata_change.TableDefinition | None = None,
        *,
        partition_by: str | PartitionBy | Sequence[str | PartitionBy] = (),
        sort_by: Sequence[OrderBy] = (),
        cluster_by: str | Sequence[str | tuple[str, ...]] = (),
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        comment: str | None = None,
        format: str = "",
        replace: bool = False,
    ) -> Result:
        """Create (or replace) a table that holds these rows, in one commit.

        `rows` is what `Table.append` takes; the columns are those of the rows. The other arguments
        are those of `create_table`; a whole `layout` stands for all of them.
        """
        identifier = self.workspace.full_name(name)
        if not replace and self.exists(identifier):
            raise create.already_there(identifier)
        if layout is None:
            rows, schema = create_as.rows_with_schema(rows, self.engine)
            layout = metadata_change.TableDefinition(
                schema=schema,
                partition_by=_all_of(partition_by),
                sort_by=tuple(sort_by),
                cluster_by=_paths(cluster_by),
                properties=dict(properties or {}),
                location=location,
                comment=comment,
                format=format,
            )
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
        name = self.workspace.full_name(name)
        formats.validate_in_catalog(name, "drop")
        if if_exists and not self.exists(name):
            return
        self.workspace.session.forget_rows(name)
        if formats.drop_name(self.catalog, name, purge=purge):
            return
        if purge:
            purging.drop_with_files(self.catalog, name, also_below=also_below)
        else:
            catalog_tables.drop_table(self.catalog, name)

    def rename_table(self, name: str | tuple[str, ...], to: str | tuple[str, ...]) -> Table:
        """Rename a table."""
        name, to = self.workspace.full_name(name), self.workspace.full_name(to)
        formats.validate_in_catalog(name, "rename")
        return Table(formats.rename_table(self.catalog, name, to), self)

    def register_table(self, name: str | tuple[str, ...], metadata_location: str) -> Table:
        """Add a table that exists in storage: by its metadata file, a Delta table by its folder."""
        name = self.workspace.full_name(name)
        handle = formats.register_table(self.catalog, name, metadata_location)
        return Table(handle, self)

    def convert(self, name: str | tuple[str, ...], to: str) -> Table:
        """Make a table one of another format (`iceberg` or `delta`), in place.

        Its name then means the same data files and deletion vectors under metadata of that format;
        the metadata that it had stay where they are, and nothing reads them.
        """
        name = self.workspace.full_name(name)
        formats.validate_in_catalog(name, "convert")
        self.workspace.session.forget_rows(name)
        return Table(converting.convert(self.catalog, name, to), self)

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
            self.workspace.full_name(name),
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
            self.workspace.full_name(name),
            properties=properties,
            file_format=file_format,
        )
        return result

    def convert_to_delta(
        self,
        path: str,
        *,
        partition_by: Any = None,
        properties: Mapping[str, str] | None = None,
        statistics: bool = True,
    ) -> Table:
        """Make a folder of Parquet files a Delta table, in place.

        `partition_by` has the columns of `key=value` folders with their types, as `create_table`
        takes a schema (`"day DATE"`). Without `statistics` only rows are counted.
        """
        handle = parquet_converting.convert_to_delta(
            self.catalog,
            self.engine,
            str(path),
            partition_by=partition_by,
            properties=properties,
            statistics=statistics,
        )
        return Table(handle, self)

    # ------------------------------------------------------------------ streams

    def read_stream(
        self,
        name: str | tuple[str, ...],
        *,
        changes: bool = False,
        start: int | str | None = None,
        start_as_of: Any = None,
        max_files_per_trigger: int | None = None,
        max_rows_per_trigger: int | None = None,
        branch: str = "main",
    ) -> Any:
        """Return the rows added to a table, or its changes, as a streaming DataFrame.

        `start` is a snapshot, after which the stream begins, `"latest"`, or `"earliest"` (the
        default): first the table as it is. With `changes` rows say what happened to them; an
        update is a delete and an insert. Limits are of one batch; leave them out where the
        query's trigger is `availableNow`, which has one batch of all there is.
        """
        options = stream_options.options_of(
            start, start_as_of, max_files_per_trigger, max_rows_per_trigger
        )
        options |= {"changes": str(changes).lower(), "branch": branch}
        reader = self.spark.readStream.format("rowlake").options(**options)
        return reader.load(quoted(self.workspace.full_name(name)))

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
