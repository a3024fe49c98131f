"""The maintenance verbs of `Table`; each names its module of `rowlake.maintain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.deferred import deferred
from rowlake.engine.tally import says_where_it_ran
from rowlake.errors import InvalidStatementError
from rowlake.times import to_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.engine.spark import Engine
    from rowlake.maintain import key_index
    from rowlake.maintain.autopilot import health, optimize
    from rowlake.maintain.cleanup import erase as erasing
    from rowlake.maintain.cleanup import erased_rows, expire, file_list, orphans
    from rowlake.maintain.cleanup import vacuum as vacuuming
    from rowlake.maintain.compact import request_text, rewrite
    from rowlake.maintain.deletes import equality_deletes, position_deletes
    from rowlake.maintain.delta import clone as cloning
    from rowlake.maintain.delta import generate as generating
    from rowlake.maintain.delta import restore as restoring
    from rowlake.maintain.delta import vacuum as log_vacuum
    from rowlake.maintain.iceberg import manifests, partition_stats, table_path, table_stats
    from rowlake.model.handle import TableHandle
    from rowlake.model.health import Health
    from rowlake.model.predicate import Predicate
    from rowlake.workspace import Workspace
else:  # loaded at their first use
    (key_index,) = deferred("rowlake.maintain", "key_index")
    health, optimize = deferred("rowlake.maintain.autopilot", "health optimize")
    erasing, erased_rows, expire, file_list, orphans, vacuuming = deferred(
        "rowlake.maintain.cleanup", "erase erased_rows expire file_list orphans vacuum"
    )
    request_text, rewrite = deferred("rowlake.maintain.compact", "request_text rewrite")
    equality_deletes, position_deletes = deferred(
        "rowlake.maintain.deletes", "equality_deletes position_deletes"
    )
    cloning, generating, restoring, log_vacuum = deferred(
        "rowlake.maintain.delta", "clone generate restore vacuum"
    )
    manifests, partition_stats, table_path, table_stats = deferred(
        "rowlake.maintain.iceberg", "manifests partition_stats table_path table_stats"
    )


class Maintenance:
    """What `Table` inherits: every verb looks at the newest metadata and keeps what came of it."""

    _handle: TableHandle
    _workspace: Workspace

    @property
    def handle(self) -> TableHandle:
        """The table's newest metadata."""
        raise NotImplementedError

    @property
    def _engine(self) -> Engine:
        return self._workspace.engine

    def health(self, *, branch: str = "main", orphans: bool = False) -> Health:
        """Return how the table is, by its metadata, and what to run where it is not well.

        `orphans` lists storage too, to count files that belong to nothing.
        """
        return health.health(self.handle, self._engine, branch=branch, orphans=orphans)

    @says_where_it_ran
    def optimize(
        self,
        dry_run: bool = False,
        max_bytes: int | None = None,
        max_seconds: float | None = None,
        where: str | Predicate | None = None,
        *,
        branch: str = "main",
    ) -> optimize.OptimizeReport:
        """Look at the table and run the maintenance that pays; the report says why.

        `max_bytes` bounds what is rewritten, `max_seconds` how long it goes on, `where` keeps to
        files that may hold matching rows. What is done stays done; run it again for the rest.
        """
        handle = self.handle
        view = handle.view(ref=branch if branch != "main" else None)
        self._handle, report = optimize.optimize(
            handle,
            self._engine,
            dry_run=dry_run,
            max_bytes=max_bytes,
            max_seconds=max_seconds,
            where=request_text.files_where(self._engine, handle, view, where),
            branch=branch,
        )
        return report

    @says_where_it_ran
    def rewrite_data_files(
        self,
        strategy: str = "binpack",
        order: str | Sequence[str] | None = None,
        where: str | Predicate | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        branch: str = "main",
        dry_run: bool = False,
        max_bytes: int | None = None,
        max_seconds: float | None = None,
        progress: Any = None,
    ) -> rewrite.RewriteReport:
        """Compact data files: `binpack`, `sort` (by `order`, or the table's), or `zorder`.

        `where` chooses files that may hold matching rows; `options` are Iceberg's. `max_bytes` and
        `max_seconds` bound the work; what is left is for the next run.
        """
        handle = self.handle
        view = handle.view(ref=branch if branch != "main" else None)
        request = rewrite.Request(
            where=request_text.files_where(self._engine, handle, view, where),
            options=dict(options or {}),
            layout=request_text.layout_for(view, strategy, order),
            branch=branch,
            dry_run=dry_run,
            max_bytes=max_bytes,
            max_seconds=max_seconds,
            progress=progress,
        )
        self._handle, report = rewrite.rewrite_data_files(handle, self._engine, request)
        return report

    @says_where_it_ran
    def rewrite_position_delete_files(
        self,
        options: Mapping[str, Any] | None = None,
        where: str | Predicate | None = None,
        *,
        branch: str = "main",
        dry_run: bool = False,
    ) -> position_deletes.RewritePositionDeleteFilesReport:
        """Merge position delete files, or turn them into vectors; no data file is read.

        `options` are Iceberg's; `where` chooses partitions.
        """
        handle = self.handle
        view = handle.view(ref=branch if branch != "main" else None)
        self._handle, report = position_deletes.rewrite_position_delete_files(
            handle,
            self._engine,
            options=options,
            where=request_text.files_where(self._engine, handle, view, where),
            branch=branch,
            dry_run=dry_run,
        )
        return report

    @says_where_it_ran
    def convert_equality_deletes(
        self,
        where: str | Predicate | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        branch: str = "main",
        dry_run: bool = False,
    ) -> equality_deletes.ConvertEqualityDeletesReport:
        """Turn equality deletes into position deletes or vectors, which are quicker to read past.

        `where` chooses data files that may hold matching rows; the option `delete-granularity`
        (`file`, `partition`) is for format version 2.
        """
        handle = self.handle
        view = handle.view(ref=branch if branch != "main" else None)
        self._handle, report = equality_deletes.convert_equality_deletes(
            handle,
            self._engine,
            where=request_text.files_where(self._engine, handle, view, where),
            options=options,
            branch=branch,
            dry_run=dry_run,
        )
        return report

    @says_where_it_ran
    def rewrite_manifests(
        self,
        *,
        use_caching: bool | None = None,
        spec_id: int | None = None,
        sort_by: Sequence[str] | None = None,
        branch: str = "main",
        dry_run: bool = False,
    ) -> manifests.RewriteManifestsReport:
        """Rewrite the manifests of a spec: few of them, clustered by partition.

        The current spec by default; `sort_by` names the partition fields to cluster by.
        """
        self._handle, report = manifests.rewrite_manifests(
            self.handle,
            self._engine,
            use_caching=use_caching,
            spec_id=spec_id,
            sort_by=sort_by,
            branch=branch,
            dry_run=dry_run,
        )
        return report

    @says_where_it_ran
    def expire_snapshots(
        self,
        older_than: Any = None,
        retain_last: int | None = None,
        *,
        max_concurrent_deletes: int | None = None,
        stream_results: bool = False,
        snapshot_ids: Sequence[int] | None = None,
        clean_expired_metadata: bool = False,
        also_below: Sequence[str] | str | None = (),
        dry_run: bool = False,
    ) -> expire.ExpireSnapshotsReport:
        """Expire old snapshots, and delete the files that no other snapshot needs.

        `older_than` is a time (the table's `history.expire.max-snapshot-age-ms`, five days, by
        default); the last `retain_last` of each branch stay, and what a branch or tag points to.
        Files outside of the table's own folders are reported and left, but for those below the
        folders `also_below`.
        """
        self._handle, report = expire.expire_snapshots(
            self.handle,
            self._engine,
            older_than_ms=None if older_than is None else to_ms(older_than),
            retain_last=retain_last,
            max_concurrent_deletes=max_concurrent_deletes,
            stream_results=stream_results,
            snapshot_ids=snapshot_ids,
            clean_expired_metadata=clean_expired_metadata,
            also_below=also_below,
            dry_run=dry_run,
        )
        return report

    @says_where_it_ran
    def remove_orphan_files(
        self,
        older_than: Any = None,
        location: str | None = None,
        *,
        dry_run: bool = True,
        max_concurrent_deletes: int | None = None,
        file_list_view: Any = None,
        equal_schemes: Mapping[str, str] | None = None,
        equal_authorities: Mapping[str, str] | None = None,
        prefix_mismatch_mode: str = "ERROR",
        prefix_listing: bool = False,
        stream_results: bool = False,
        force: bool = False,
        also_below: Sequence[str] | str | None = (),
    ) -> orphans.RemoveOrphanFilesReport:
        """List the files below the table that no metadata names; remove them with `dry_run=False`.

        Files younger than `older_than` (three days ago by default) are left alone; a time less
        than a day ago needs `force`. `file_list_view` (a name, a DataFrame or an Arrow table with
        file_path and last_modified) is taken instead of a listing. Folders that the metadata names
        outside of the table's own are looked into only where they are below `also_below`.
        """
        files = None
        if file_list_view is not None:
            files = file_list.file_list_of(self._workspace, file_list_view)
        self._handle, report = orphans.remove_orphan_files(
            self.handle,
            self._engine,
            older_than=older_than,
            location=location,
            dry_run=dry_run,
            max_concurrent_deletes=max_concurrent_deletes,
            file_list_view=files,
            equal_schemes=equal_schemes,
            equal_authorities=equal_authorities,
            prefix_mismatch_mode=prefix_mismatch_mode,
            prefix_listing=prefix_listing,
            stream_results=stream_results,
            force=force,
            also_below=also_below,
        )
        return report

    @says_where_it_ran
    def vacuum(
        self,
        retain_hours: float | None = None,
        *,
        retention_hours: float | None = None,
        dry_run: bool = True,
        also_below: Sequence[str] | str | None = (),
        enforce_retention_duration: bool = True,
    ) -> vacuuming.VacuumReport:
        """Expire snapshots older than the retention (a week by default), then remove what is left.

        That is the files that only expired snapshots needed, and orphans older than the retention,
        in the table's own folders and below `also_below`. Of a Delta table, files go that no
        version within the retention refers to; a retention below the table's own is refused where
        it is enforced. `retention_hours` is another name of `retain_hours`.
        """
        if retain_hours is not None and retention_hours is not None:
            raise InvalidStatementError("Give retain_hours or retention_hours, not both.")
        handle = self.handle
        hours = retention_hours if retain_hours is None else retain_hours
        if handle.can.snapshot_expiry:
            self._handle, report = vacuuming.vacuum(
                handle, self._engine, retain_hours=hours, dry_run=dry_run, also_below=also_below
            )
        else:
            self._handle, report = log_vacuum.vacuum(
                handle,
                self._engine,
                retain_hours=hours,
                dry_run=dry_run,
                enforce_retention_duration=enforce_retention_duration,
            )
        return report

    @says_where_it_ran
    def restore(
        self,
        version: int | None = None,
        as_of: Any = None,
        *,
        ignore_missing_files: bool = False,
    ) -> restoring.RestoreReport:
        """Bring a Delta table back to an earlier version, in a new one, by its number or a time.

        Schema and properties come back too. Files that VACUUM deleted make it an error, unless
        missing ones are to be ignored.
        """
        self._handle, report = restoring.restore_table(
            self.handle,
            self._engine,
            version=version,
            as_of=as_of,
            ignore_missing_files=ignore_missing_files,
        )
        return report

    @says_where_it_ran
    def clone(
        self,
        name: str | tuple[str, ...],
        *,
        shallow: bool = False,
        version: int | None = None,
        as_of: Any = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> cloning.CloneReport:
        """Create a Delta table with the rows of this one, or of a version of it.

        A shallow clone reads the files of its source, and breaks when those are vacuumed; else
        they are copied. `properties` win over those of the source.
        """
        handle = self.handle
        to = cloning.CloneTo(
            self._workspace.full_name(name),
            shallow,
            restoring.version_of(handle, version, as_of),
            location,
            dict(properties or {}),
        )
        _, report = cloning.clone_table(handle, self._engine, to)
        return report

    @says_where_it_ran
    def reorg(self, where: str | Predicate | None = None) -> rewrite.RewriteReport:
        """Rewrite the data files that have deleted rows (REORG … APPLY (PURGE)).

        `where` keeps to files that may hold matching rows. What was deleted is gone from storage
        once older versions are vacuumed, or expired.
        """
        options = {"delete-file-threshold": "1", "min-input-files": str(2**31 - 1)}
        options |= {"min-file-size-bytes": "0", "max-file-size-bytes": str(2**62)}
        return self.rewrite_data_files("binpack", None, where, options)

    def generate(self, mode: str = "symlink_format_manifest") -> None:
        """Write the manifests of a Delta table's files, for engines that cannot read its log."""
        generating.generate(self.handle, mode)

    @says_where_it_ran
    def create_index(self, keys: str | Sequence[str]) -> key_index.KeyIndexReport:
        """Index the table by some columns, so that rows are found by key without a scan.

        Files that exist are indexed now, new ones when they are written. Replaces another index.
        """
        self._handle, report = key_index.create_index(self.handle, self._engine, keys)
        return report

    @says_where_it_ran
    def drop_index(self) -> key_index.KeyIndexReport:
        """Drop the key index and delete its files."""
        self._handle, report = key_index.drop_index(self.handle, self._engine)
        return report

    @says_where_it_ran
    def compute_table_stats(
        self,
        *,
        snapshot_id: int | None = None,
        columns: Sequence[str] | None = None,
        dry_run: bool = False,
    ) -> table_stats.TableStatsReport:
        """Count the distinct values of columns into a Puffin file that the metadata names.

        All columns of primitive types by default, at the current snapshot.
        """
        self._handle, report = table_stats.compute_table_stats(
            self.handle, self._engine, snapshot_id=snapshot_id, columns=columns, dry_run=dry_run
        )
        return report

    @says_where_it_ran
    def compute_partition_stats(
        self, *, snapshot_id: int | None = None, dry_run: bool = False
    ) -> partition_stats.PartitionStatsReport:
        """Count what each partition holds into a file that the metadata names."""
        self._handle, report = partition_stats.compute_partition_stats(
            self.handle, self._engine, snapshot_id=snapshot_id, dry_run=dry_run
        )
        return report

    @says_where_it_ran
    def erase(
        self,
        keys: Any = None,
        *,
        where: str | Predicate | None = None,
        drop_tags: bool = False,
        also_below: Sequence[str] | str | None = (),
        dry_run: bool = False,
    ) -> erasing.EraseReport:
        """Remove rows from the table and from all of its history, and prove it.

        `keys` are values of the one identifier field, or rows of key columns as dicts; or `where`
        says which rows, comparing columns with literals. Snapshots that hold such rows expire; tags
        that do are dropped only with `drop_tags`. Files outside of the table's own folders are
        left, but for those below `also_below`.
        """
        handle = self.handle
        predicate = erased_rows.rows_to_erase(self._engine, handle, keys, where)
        self._handle, report = erasing.erase(
            handle,
            self._engine,
            predicate,
            drop_tags=drop_tags,
            also_below=also_below,
            dry_run=dry_run,
        )
        return report

    @says_where_it_ran
    def rewrite_table_path(
        self,
        source_prefix: str,
        target_prefix: str,
        *,
        start_version: str | None = None,
        end_version: str | None = None,
        staging_location: str | None = None,
        create_file_list: bool = True,
        dry_run: bool = False,
    ) -> table_path.RewriteTablePathReport:
        """Stage the table's metadata with another prefix in its paths, and list what to copy.

        Versions are names of metadata files: with a start, only what came after it.
        """
        _, report = table_path.rewrite_table_path(
            self.handle,
            self._engine,
            source_prefix=source_prefix,
            target_prefix=target_prefix,
            start_version=start_version,
            end_version=end_version,
            staging_location=staging_location,
            create_file_list=create_file_list,
            dry_run=dry_run,
        )
        return report
