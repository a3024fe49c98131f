"""`Table`: what a user holds of one table. Thin: every verb names its room.

Each verb looks at the table's newest metadata first, so a `Table` never shows stale rows, and two
of them for one table see each other's commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.deferred import deferred
from rowlake.engine.tally import says_where_it_ran
from rowlake.errors import InvalidStatementError
from rowlake.maintenance import Maintenance
from rowlake.model.metadata_change import (
    CreateRef,
    DropRef,
    FastForward,
    MetadataChange,
    MoveRef,
    Retention,
    Rollback,
)
from rowlake.streaming import Streaming
from rowlake.times import to_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from typing_extensions import Unpack

    from rowlake import merge_builder
    from rowlake.commit import metadata as commit
    from rowlake.dml import change, insert, operations, python_arguments
    from rowlake.dml import options as write_options
    from rowlake.lake import Lake
    from rowlake.maintain.autopilot import auto
    from rowlake.mirror import verb as mirroring
    from rowlake.model import snapshot_list, table_schema
    from rowlake.model.arguments import RefArguments, WriteArguments
    from rowlake.model.handle import TableHandle
    from rowlake.model.mirror import Mirrored
    from rowlake.model.predicate import Predicate
    from rowlake.model.result import Result
    from rowlake.model.table_schema import TableSchema, TableSpec
    from rowlake.model.view import SnapshotInfo
    from rowlake.query import lookup as lookups
    from rowlake.query import row_condition, table_rows
    from rowlake.rowlevel import upsert as upserting
    from rowlake.stream import apply as applying
    from rowlake.stream import feed
    from rowlake.stream import sink as batches
    from rowlake.verbs import (
        alter,
        branches,
        cherry_pick,
        ingest,
        inspect,
        overview,
        read,
        wap,
        write,
    )
else:  # loaded at their first use: most statements need few of them
    (commit,) = deferred("rowlake.commit", "metadata")
    (auto,) = deferred("rowlake.maintain.autopilot", "auto")
    (mirroring,) = deferred("rowlake.mirror", "verb")
    (merge_builder,) = deferred("rowlake", "merge_builder")
    snapshot_list, table_schema = deferred("rowlake.model", "snapshot_list table_schema")
    (upserting,) = deferred("rowlake.rowlevel", "upsert")
    applying, batches, feed = deferred("rowlake.stream", "apply sink feed")
    change, insert, operations, python_arguments, write_options = deferred(
        "rowlake.dml", "change insert operations python_arguments options"
    )
    lookups, row_condition, table_rows = deferred(
        "rowlake.query", "lookup row_condition table_rows"
    )
    alter, branches, cherry_pick, ingest, inspect, overview, read, wap = deferred(
        "rowlake.verbs", "alter branches cherry_pick ingest inspect overview read wap"
    )

Time = "str | int | float | datetime.datetime"


class Table(Maintenance, Streaming):
    """One table of a lake; made by `Lake.table`.

    With `pinned`, it keeps to the metadata that it has and what its own commits make of it, as one
    statement sees a table.
    """

    def __init__(self, handle: TableHandle, lake: Lake, *, pinned: bool = False) -> None:
        self._handle = handle
        self._pinned = pinned
        self._lake = lake
        self._workspace = lake.workspace

    def __repr__(self) -> str:
        return f"Table({self.name})"

    def _repr_html_(self) -> str:
        return overview.table_html(self.handle)

    # ------------------------------------------------------------------ what it is

    @property
    def name(self) -> str:
        """The name, with its namespace."""
        return self._handle.name

    @property
    def lake(self) -> Lake:
        """The lake that the table is in; conditions and sources may name its other tables."""
        return self._lake

    @property
    def identifier(self) -> tuple[str, ...]:
        """The name, in its parts."""
        return tuple(self._handle.identifier)

    @property
    def handle(self) -> TableHandle:
        """The table's newest metadata, with what it takes to commit to it."""
        if not self._pinned:
            self._handle = self._handle.format.refresh(self._handle)
        return self._handle

    @property
    def schema(self) -> TableSchema:
        """The current schema; `to_pyiceberg().schema()` is PyIceberg's."""
        return table_schema.table_schema(self.handle.view().schema)

    @property
    def spec(self) -> TableSpec:
        """The current partitioning; `to_pyiceberg().spec()` is PyIceberg's."""
        return table_schema.table_spec(self.handle.view())

    @property
    def format(self) -> str:
        """The table format: `iceberg` or `delta`."""
        return self._handle.format.name

    @property
    def properties(self) -> dict[str, str]:
        """The table properties."""
        return dict(self.handle.properties)

    @property
    def location(self) -> str:
        """Where the table's files are."""
        return self.handle.location

    @property
    def format_version(self) -> int:
        """The version of the format; of Delta tables the reader version."""
        return self.handle.format_version

    # ------------------------------------------------------------------ reading

    def df(
        self,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        snapshot_id: int | None = None,
        as_of: Any = None,
        ref: str | None = None,
    ) -> Any:
        """Return rows as a Spark DataFrame; columns and filter are pushed into the scan.

        `as_of` is a time (datetime, ISO text, or ms since 1970), `ref` a branch or tag.
        """
        handle = self.handle
        at = self._at(handle, snapshot_id, as_of, ref)
        if isinstance(where, str):
            condition = python_arguments.condition_of(where, "where") or ""
            lookup = lookups.TableLookup(self._workspace, [handle])
            return row_condition.frame_where(lookup, handle, condition, columns, **at)
        exact = where is not None
        request = read.Request(columns, where, exact=exact, **at)
        return table_rows.table_rows(handle, self._engine, request)

    def arrow(
        self,
        columns: Sequence[str] | None = None,
        where: Predicate | None = None,
        snapshot_id: int | None = None,
        as_of: Any = None,
        ref: str | None = None,
    ) -> pa.Table:
        """Return rows as an Arrow table; a small read needs no Spark session."""
        handle = self.handle
        at = self._at(handle, snapshot_id, as_of, ref)
        return read.arrow(handle, self._engine, read.Request(columns, where, exact=True, **at))

    def changes(
        self,
        start: int | None = None,
        end: int | None = None,
        start_as_of: Any = None,
        end_as_of: Any = None,
        keys: Sequence[str] | None = None,
        net: bool = False,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        branch: str = "main",
    ) -> Any:
        """Return what changed after one snapshot (or time) up to another, as a Spark DataFrame.

        Rows come in the schema of the end, with `_change_type` (`insert`, `delete`,
        `update_preimage`, `update_postimage`), `_change_ordinal`, `_commit_snapshot_id` and
        `_commit_timestamp`. Without a start, the rows of the oldest snapshot kept come first, as
        inserts. Updates are paired by `keys` (the identifier fields by default), else by row id
        where the table has them, else they are a delete and an insert. `net` leaves one change of
        each row, or key, over the whole span.
        """
        bounds = feed.bounds_of(start, end, start_as_of, end_as_of, branch)
        asked = feed.ChangesRequest(bounds, keys, net, columns)
        return feed.changes(self.handle, self._engine, asked, where)

    def changes_arrow(
        self,
        start: int | None = None,
        end: int | None = None,
        start_as_of: Any = None,
        end_as_of: Any = None,
        keys: Sequence[str] | None = None,
        net: bool = False,
        columns: Sequence[str] | None = None,
        where: Predicate | None = None,
        branch: str = "main",
    ) -> pa.Table:
        """Return what `changes` does as an Arrow table, in the order of commits.

        A few changes need no Spark session.
        """
        bounds = feed.bounds_of(start, end, start_as_of, end_as_of, branch)
        exact = where is not None
        asked = feed.ChangesRequest(bounds, keys, net, columns, where, exact=exact)
        return feed.arrow(self.handle, self._engine, asked)

    def _at(
        self, handle: TableHandle, snapshot_id: int | None, as_of: Any, ref: str | None
    ) -> dict[str, Any]:
        """Return which snapshot is meant; where none is named, the session's settings say."""
        if snapshot_id is None and as_of is None and ref is None:
            ref = wap.read_branch(handle, self._engine)
        as_of_ms = None if as_of is None else to_ms(as_of)
        return {"snapshot_id": snapshot_id, "as_of_ms": as_of_ms, "ref": ref}

    # ------------------------------------------------------------------ writing

    @says_where_it_ran
    def append(self, rows: Any, **options: Unpack[WriteArguments]) -> Result:
        """Add rows: a Spark DataFrame, an Arrow table, a pandas or polars frame, dicts, a path."""
        return self._keep(insert.append_rows(self.handle, self._engine, rows, options))

    @says_where_it_ran
    def add_files(
        self,
        source: Any,
        partition_filter: Mapping[str, Any] | None = None,
        *,
        check_duplicate_files: bool = True,
        file_format: str | None = None,
        **options: Unpack[WriteArguments],
    ) -> Result:
        """Take Parquet, ORC or Avro files into the table as they are: a path, a directory, a list.

        Partition values come from `key=value` folders, of which the filter picks some.
        """
        handle, chosen = self.for_write(options)
        landed, result = ingest.add_files(
            handle,
            self._engine,
            source,
            chosen,
            partition_filter=partition_filter,
            check_duplicate_files=check_duplicate_files,
            file_format=file_format,
        )
        return self._wrote(landed, result)

    @says_where_it_ran
    def overwrite(
        self,
        rows: Any,
        where: str | Predicate | None = None,
        *,
        dynamic: bool = False,
        **options: Unpack[WriteArguments],
    ) -> Result:
        """Replace all rows, those that a filter selects, or (dynamic) the partitions hit."""
        return self._keep(
            insert.overwrite_rows(
                self.handle, self._engine, rows, options, where=where, dynamic=dynamic
            )
        )

    @says_where_it_ran
    def truncate(self, **options: Unpack[WriteArguments]) -> Result:
        """Remove all rows; metadata only."""
        return self._keep(insert.truncate_rows(self.handle, self._engine, options))

    @says_where_it_ran
    def delete(self, where: str | Predicate, **options: Unpack[WriteArguments]) -> Result:
        """Delete the rows for which a condition is TRUE; subqueries may name other tables.

        `mode` is `auto` (decided per file), `copy-on-write` or `merge-on-read`; `isolation` is
        `serializable` or `snapshot`; `branch` as for every write. `deletes="equality"` takes
        conditions of `=`, IN, IS NULL, AND and OR: no row is read, and none is counted.
        """
        if where is None:
            raise InvalidStatementError(
                f"DELETE from {self.name} needs a condition; truncate() removes all rows."
            )
        condition = (
            python_arguments.condition_of(where, "where") if isinstance(where, str) else where
        )
        return self._change_rows(operations.Delete(self.identifier, where=condition), options)

    def update(
        self,
        set: Mapping[str, Any] | None = None,
        where: str | None = None,
        *,
        values: Mapping[str, Any] | None = None,
        **options: Unpack[WriteArguments],
    ) -> Result:
        """Give columns new values in the rows for which a condition is TRUE (all without one).

        `set` takes columns (`a`, or `a.b` for a field) to SQL expressions (`"price * 1.1"`),
        `values` to values as they are (`"shipped"` is that text); options are those of `delete`.
        """
        name = self.identifier
        owners = operations.qualifiers(name, None)
        assigned = python_arguments.assigned(set, values, owners)
        condition = python_arguments.condition_of(where, "where")
        return self._change_rows(operations.Update(name, assigned, where=condition), options)

    def merge(
        self, source: Any, on: str | Sequence[str], **options: Unpack[WriteArguments]
    ) -> merge_builder.MergeBuilder:
        """Return a builder of a MERGE (`MergeBuilder`); `execute()` runs it.

        `source` is what `append` takes, or another table; `on` a condition in which the target is
        `t` and the source is `s`, or a list of columns that both have. Options are those of
        `delete`.
        """
        write_options.write_options(options)
        return merge_builder.merge_into(self, source, on, options)

    @says_where_it_ran
    def upsert(
        self,
        rows: Any,
        keys: Sequence[str] | None = None,
        *,
        on_duplicates: str = "error",
        if_exists: str = "update",
        **options: Unpack[WriteArguments],
    ) -> Result:
        """Write rows in place of those with the same keys (the identifier fields by default).

        `rows` is what `append` takes; columns that it lacks keep their values. One row per key is
        guaranteed among what is written: `on_duplicates` is `error`, or `latest by <column>`.
        `if_exists="reject"` makes a key that is there already an error. Rows that do not change
        are not rewritten. `deletes="equality"` does not read the table at all.
        """
        handle, chosen = self.for_write(options)
        wanted = upserting.Upsert(keys, on_duplicates, if_exists)
        return self._wrote(*upserting.upsert(handle, self._engine, rows, wanted, chosen))

    @says_where_it_ran
    def apply_changes(
        self,
        rows: Any,
        keys: Sequence[str] | None = None,
        sequence_by: str | None = None,
        apply_as_deletes: str | None = None,
        format: str | None = None,
        scd_type: int = 1,
        schema_evolution: bool = False,
        app_id: str | None = None,
        batch: int | None = None,
        **options: Unpack[WriteArguments],
    ) -> Result:
        """Apply a batch of change events in one commit; the last event of each key wins.

        `rows` is what `append` takes, or messages of a `format` (`debezium`, `wal2json`,
        `pgoutput`, `images`). `sequence_by` orders the events of a key; where it is a column of the
        table, events older than the table's row are left out. `apply_as_deletes` is an SQL
        condition on the event. `scd_type=2` keeps every version, with `__start_at` and `__end_at`.
        A batch number of an app that has landed already is skipped (`Result.skipped`).
        """
        wanted = applying.ApplyChanges(
            keys, sequence_by, apply_as_deletes, format, scd_type, schema_evolution
        )
        marked = {**options, **batches.batch_option(app_id, batch)}
        handle, chosen = self.for_write(marked)
        return self._wrote(*applying.apply_changes(handle, self._engine, rows, wanted, chosen))

    def lookup(self) -> lookups.TableLookup:
        """Return what finds tables for one statement, and has this one as it is now."""
        return lookups.TableLookup(self._workspace, [self.handle])

    def _change_rows(self, operation: operations.Delete | operations.Update, given: Any) -> Result:
        write_options.write_options(given)
        self._handle, result = change.change_rows(self.lookup(), operation, **given)
        return result

    def _keep(self, written: tuple[TableHandle, Result]) -> Result:
        self._handle, result = written
        return result

    def _wrote(self, landed: TableHandle, result: Result) -> Result:
        """Keep the table after a write, and look after it where its properties ask for that."""
        self._handle = landed
        self._handle = auto.tidied(landed, self._engine, result)
        return result

    def for_write(self, given: Mapping[str, Any]) -> tuple[TableHandle, write.WriteOptions]:
        """Return the newest metadata and the options of a write, its settings for WAP applied."""
        return write_options.for_write(self.handle, self._engine, given)

    # ------------------------------------------------------------------ looking

    def snapshots(self) -> list[SnapshotInfo]:
        """Return all snapshots kept, oldest first."""
        return snapshot_list.SnapshotList(self.handle.snapshots)

    def history(self) -> pa.Table:
        """Return what was current when, and what made it.

        `statement` is `MERGE`, `UPDATE`, `DELETE`, `UPSERT`, `rewrite_data_files`, …; then its
        condition, the rows it updated, deleted and inserted, the rows left, and the user. What a
        snapshot does not tell is null. Delta tables have the columns of DESCRIBE HISTORY.
        """
        return inspect.history(self.handle)

    def files(self) -> pa.Table:
        """Return the files of the current snapshot."""
        return inspect.metadata_table(self.handle, "files")

    def refs(self) -> pa.Table:
        """Return branches and tags."""
        return inspect.metadata_table(self.handle, "refs")

    def inspect(self, name: str, *, snapshot_id: int | None = None) -> pa.Table:
        """Return a metadata table by its name (`snapshots`, `files`, `partitions`, …)."""
        return inspect.metadata_table(self.handle, name, snapshot_id=snapshot_id)

    # ------------------------------------------------------------------ history

    def create_branch(
        self, name: str, snapshot_id: int | None = None, **kept: Unpack[RefArguments]
    ) -> None:
        """Create a branch at a snapshot (the current one by default)."""
        self._create_ref(name, "branch", snapshot_id, kept)

    def create_tag(
        self, name: str, snapshot_id: int | None = None, **kept: Unpack[RefArguments]
    ) -> None:
        """Create a tag at a snapshot (the current one by default)."""
        self._create_ref(name, "tag", snapshot_id, kept)

    def _create_ref(
        self, name: str, kind: str, snapshot_id: int | None, kept: Mapping[str, Any]
    ) -> None:
        kept = write_options.known_options(kept, Retention, "replace", "if_not_exists")
        flags = {key: kept[key] for key in ("replace", "if_not_exists") if key in kept}
        retention = Retention(**{key: kept[key] for key in kept if key not in flags})
        wanted = CreateRef(name, kind, snapshot_id, retention, **flags)
        self._handle = branches.create_ref(self.handle, wanted)

    def drop_ref(self, name: str, *, if_exists: bool = False, kind: str | None = None) -> None:
        """Drop a branch or tag; with `kind` (`branch` or `tag`) only one of that kind."""
        self._change(f"drop {name}", DropRef(name, if_exists, kind))

    def fast_forward(self, branch: str, to: str) -> None:
        """Move a branch to the head of another that has all its commits."""
        self._change(f"fast-forward {branch}", FastForward(branch, to))

    def rollback_to(
        self, snapshot_id: int | None = None, as_of: Any = None, branch: str = "main"
    ) -> None:
        """Move a branch back to an ancestor, by id or to what it was before a time."""
        if snapshot_id is None:
            snapshot_id = branches.snapshot_id_before(self.handle, to_ms(as_of), branch)
        self._change("rollback", Rollback(snapshot_id, branch))

    def set_current_snapshot(self, snapshot_id: int, branch: str = "main") -> None:
        """Point a branch to any snapshot that the table keeps."""
        self._change("set snapshot", MoveRef(branch, snapshot_id))

    @says_where_it_ran
    def cherry_pick(self, snapshot_id: int, branch: str = "main") -> Result:
        """Bring the change of one snapshot onto a branch."""
        self._handle, result = cherry_pick.cherry_pick(self.handle, snapshot_id, branch)
        return result

    @says_where_it_ran
    def publish(self, wap_id: str, branch: str = "main") -> Result:
        """Bring a staged (write-audit-publish) snapshot onto a branch, once."""
        self._handle, result = cherry_pick.publish(self.handle, wap_id, branch)
        return result

    # ------------------------------------------------------------------ evolution

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set table properties; `format-version` upgrades the table."""
        self._handle = alter.set_properties(self.handle, properties)

    def unset_properties(self, names: Sequence[str]) -> None:
        """Remove table properties."""
        self._handle = alter.unset_properties(self.handle, names)

    def mirror(self, format: str) -> Mirrored:
        """Bring metadata of another format (`iceberg` or `delta`) to where the table is.

        They name the same data files and deletion vectors, in the same folder. With the property
        `rowlake.mirror` they follow every commit. Raises UnsupportedFeatureError for what the other
        format cannot say; the mirror then stays as it was.
        """
        return mirroring.mirror(self.handle, format)

    def evolve(self) -> Any:
        """Return PyIceberg's own table object, with its schema and spec builders."""
        return self.to_pyiceberg()

    def to_pyiceberg(self) -> Any:
        """Return PyIceberg's own table object; its commits follow rowlake's rules."""
        return self.handle.format.to_pyiceberg(self.handle)

    def _change(self, operation: str, change: MetadataChange) -> None:
        self._handle = commit.commit_metadata(self.handle, operation, change)
