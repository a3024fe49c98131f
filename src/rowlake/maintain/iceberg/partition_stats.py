"""compute_partition_stats: what each partition holds, in a file that the metadata names.

Comes in: a table and a snapshot. Goes out: the table with the file registered, and a report. Where
an ancestor of the snapshot has such a file already, only what changed since is read from manifests
and added to it; else all manifests of the snapshot are.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.commit.metadata import commit_metadata
from rowlake.errors import InvalidStatementError, RowlakeError
from rowlake.iceberg.manifest_list import read_manifest_list
from rowlake.iceberg.manifest_reader import read_manifests
from rowlake.iceberg.partition_statistics import (
    ENTRY_COLUMNS,
    combined,
    entry_statistics,
    no_statistics,
    read_statistics,
    statistics_schema,
    write_statistics,
)
from rowlake.iceberg.statistics import (
    partition_statistics_of,
    set_partition_statistics,
    statistics_location,
)
from rowlake.maintain.guard import check_outside_transaction
from rowlake.maintain.iceberg.handles import iceberg_handle
from rowlake.maintain.iceberg.table_stats import removed_on_failure
from rowlake.model.files import MANIFESTS
from rowlake.model.report import Report
from rowlake.model.unified_partition import unified_partition_type
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from rowlake.catalog.handle import IcebergHandle
    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.view import TableView

VERB = "compute_partition_stats"


@dataclass(frozen=True)
class PartitionStatsReport(Report):
    """What was counted; no file where the table has no snapshot, or holds nothing."""

    always_shown: ClassVar[tuple[str, ...]] = ("partition_statistics_file",)

    partition_statistics_file: str | None
    snapshot_id: int | None = None
    dry_run: bool = False
    partitions: int = 0
    incremental: bool = False
    file_size_in_bytes: int = 0
    seconds: float = 0.0


def compute_partition_stats(
    handle: TableHandle,
    engine: Engine,
    *,
    snapshot_id: int | None = None,
    dry_run: bool = False,
) -> tuple[TableHandle, PartitionStatsReport]:
    """Count what the partitions of a snapshot (the current one) hold, and register the file.

    A snapshot that has such a file keeps it. A dry run counts, and writes nothing.
    """
    del engine  # manifests are columns: the driver reads and counts them
    handle = iceberg_handle(handle, VERB)
    check_outside_transaction(handle, VERB)
    started = time.perf_counter()
    view = handle.view()
    if all(spec.is_unpartitioned for spec in view.specs.values()):
        raise InvalidStatementError(
            f"Cannot compute partition statistics of {handle.name}: it is not partitioned."
        )
    wanted = view.snapshot_id if snapshot_id is None else snapshot_id
    if wanted is None:
        return handle, PartitionStatsReport(None, dry_run=dry_run)
    handle.view(snapshot_id=wanted)  # says so where there is none
    existing = partition_statistics_of(handle).get(wanted)
    if existing is not None:
        return handle, PartitionStatsReport(existing, wanted, dry_run)
    rows, incremental = _Computing(handle, view).rows_at(wanted)
    if not rows.num_rows:
        return handle, PartitionStatsReport(None, wanted, dry_run)
    schema = statistics_schema(unified_partition_type(view), view.format_version)
    data = write_statistics(rows, schema)
    location = None
    if not dry_run:
        location = statistics_location(view, f"partition-stats-{wanted}-{{}}.parquet")
        handle = _registered(handle, wanted, location, data)
    return handle, PartitionStatsReport(
        location,
        wanted,
        dry_run,
        rows.num_rows,
        incremental,
        len(data),
        time.perf_counter() - started,
    )


def _registered(
    handle: IcebergHandle, snapshot_id: int, location: str, data: bytes
) -> IcebergHandle:
    storage = Storage(handle.io_properties)
    with removed_on_failure(storage, location):
        storage.write(location, data)
        after = commit_metadata(
            handle,
            VERB,
            lambda newest: set_partition_statistics(
                iceberg_handle(newest, VERB), snapshot_id, location, len(data)
            ),
        )
    return iceberg_handle(after, VERB)


class _Computing:
    """Counts the partitions of snapshots of one table."""

    def __init__(self, handle: IcebergHandle, view: TableView) -> None:
        self._handle, self._view = handle, view
        self._storage = Storage(handle.io_properties)
        self._partition = unified_partition_type(view)
        self._times = {one.snapshot_id: one.timestamp_ms for one in handle.snapshots}

    def rows_at(self, snapshot_id: int) -> tuple[pa.Table, bool]:
        """Return the statistics of a snapshot, and whether older ones served."""
        chain = [one.snapshot_id for one in self._handle.ancestors(snapshot_id)]
        files = partition_statistics_of(self._handle)
        known = next((at for at, one in enumerate(chain) if one in files), None)
        if known is not None:
            try:
                return self._since(chain[:known], files[chain[known]]), True
            except RowlakeError:  # the older file is gone, damaged, or in another format
                pass
        return self._counted(self._manifests(snapshot_id), changes_only=False), False

    def _since(self, snapshots: list[int], location: str) -> pa.Table:
        before = read_statistics(location, self._partition, self._storage)
        own = []
        for snapshot_id in snapshots:
            listed = self._manifests(snapshot_id)
            own.append(listed.filter(pc.equal(listed["added_snapshot_id"], snapshot_id)))
        changes = self._counted(pa.concat_tables(own), changes_only=True)
        return combined(pa.concat_tables([before, changes]))

    def _manifests(self, snapshot_id: int) -> pa.Table:
        snapshot = self._handle.view(snapshot_id=snapshot_id).snapshot
        if snapshot is None or snapshot.manifest_list is None:
            return MANIFESTS.empty_table()
        return read_manifest_list(snapshot.manifest_list, self._storage)

    def _counted(self, manifests: pa.Table, *, changes_only: bool) -> pa.Table:
        found = read_manifests(
            manifests, self._view, self._storage, columns=ENTRY_COLUMNS, live_only=False
        )
        parts = [no_statistics(self._partition)]
        parts += [
            entry_statistics(
                entries, spec_id, self._partition, self._times, changes_only=changes_only
            )
            for spec_id, entries in found.items()
        ]
        return combined(pa.concat_tables(parts))
