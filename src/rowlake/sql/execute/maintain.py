"""OPTIMIZE, REORG and VACUUM, as Delta's users type them, ANALYZE TABLE and CREATE INDEX."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.errors import InvalidStatementError
from rowlake.model.key_index import has_index
from rowlake.sqltext.lexer import quote_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.lake import Lake
    from rowlake.maintain.compact.rewrite import RewriteReport
    from rowlake.sql.statements import (
        AnalyzeTable,
        CreateIndex,
        DropIndex,
        Optimize,
        Reorg,
        Vacuum,
    )
    from rowlake.table import Table

# Delta's: two small files of a partition are enough, and so is a file with 5 % deleted rows.
PACKING = {"min-input-files": "2", "delete-ratio-threshold": "0.05"}
CLUSTERING = {"rewrite-all": "true"}
_SIZES = pa.struct(
    [
        pa.field("min", pa.int64()),
        pa.field("max", pa.int64()),
        pa.field("avg", pa.float64()),
        pa.field("totalFiles", pa.int64()),
        pa.field("totalSize", pa.int64()),
    ]
)
_METRICS = pa.struct(
    [
        pa.field("numFilesAdded", pa.int64()),
        pa.field("numFilesRemoved", pa.int64()),
        pa.field("filesAdded", _SIZES),
        pa.field("filesRemoved", _SIZES),
        pa.field("partitionsOptimized", pa.int64()),
        pa.field("numBins", pa.int64()),
        pa.field("numBatches", pa.int64()),
        pa.field("totalConsideredFiles", pa.int64()),
        pa.field("totalFilesSkipped", pa.int64()),
        pa.field("preserveInsertionOrder", pa.bool_()),
        pa.field("startTimeMs", pa.int64()),
        pa.field("endTimeMs", pa.int64()),
        pa.field("numTableColumns", pa.int64()),
    ]
)
_OPTIMIZED = pa.schema([pa.field("path", pa.string()), pa.field("metrics", _METRICS)])


def optimize(_lake: Lake, statement: Optimize, table: Table) -> pa.Table:
    """Pack small files, cluster them, or Z-order them all; return Delta's path and metrics.

    WHERE chooses files that may hold matching rows, by any column.
    """
    start = time.time()
    clusters = bool(table.handle.view().cluster_by)
    if statement.full and not clusters:
        raise InvalidStatementError(f"OPTIMIZE FULL is for clustered tables; {table.name} is none.")
    if clusters and statement.zorder:
        raise InvalidStatementError(
            f"Cannot Z-order {table.name}: it is clustered. OPTIMIZE without ZORDER BY clusters it."
        )
    if clusters:
        options = CLUSTERING if statement.full else PACKING
        report = table.rewrite_data_files("cluster", None, statement.where, options)
    elif statement.zorder:
        columns = ", ".join(quote_parts(name) for name in statement.zorder)
        report = table.rewrite_data_files("zorder", columns, statement.where, CLUSTERING)
    else:
        report = table.rewrite_data_files("binpack", None, statement.where, PACKING)
    return _told(table, report, start, keeps_order=not statement.zorder and not clusters)


def reorg(_lake: Lake, statement: Reorg, table: Table) -> pa.Table:
    """Rewrite files with deleted rows; return what OPTIMIZE does."""
    start = time.time()
    return _told(table, table.reorg(statement.where), start, keeps_order=True)


def _told(table: Table, report: RewriteReport, start: float, *, keeps_order: bool) -> pa.Table:
    metrics = {
        **_metrics(report),
        "preserveInsertionOrder": keeps_order,
        "startTimeMs": int(start * 1000),
        "endTimeMs": int(time.time() * 1000),
        "numTableColumns": len(table.schema.fields),
    }
    return pa.Table.from_pylist([{"path": table.location, "metrics": metrics}], _OPTIMIZED)


def _metrics(report: RewriteReport) -> dict[str, object]:
    considered, removed = report.considered_files_count, report.rewritten_data_files_count
    return {
        "numFilesAdded": report.added_data_files_count,
        "numFilesRemoved": removed,
        "filesAdded": _sizes(report.added_sizes),
        "filesRemoved": _sizes(report.rewritten_sizes),
        "partitionsOptimized": report.partitions_count,
        "numBins": report.groups,
        "numBatches": len(report.snapshot_ids),
        "totalConsideredFiles": considered,
        "totalFilesSkipped": considered - removed,
    }


def _sizes(sizes: Sequence[int]) -> dict[str, float | None]:
    return {
        "min": min(sizes, default=None),
        "max": max(sizes, default=None),
        "avg": sum(sizes) / len(sizes) if sizes else 0.0,
        "totalFiles": len(sizes),
        "totalSize": sum(sizes),
    }


def create_index(_lake: Lake, statement: CreateIndex, table: Table) -> pa.Table:
    """CREATE INDEX: index new files from now on, and those that exist."""
    names = [_column(key, table) for key in statement.keys]
    if statement.if_not_exists and has_index(table.properties):
        return _indexed(0)
    return _indexed(table.create_index(names).files_indexed)


def drop_index(_lake: Lake, statement: DropIndex, table: Table) -> None:
    """DROP INDEX."""
    if not statement.if_exists or has_index(table.properties):
        table.drop_index()


def _column(name: tuple[str, ...], table: Table) -> str:
    if len(name) > 1:
        raise InvalidStatementError(
            f"Cannot index {table.name} by {'.'.join(name)}: a key must be a column, not a field."
        )
    return name[0]


def _indexed(count: int) -> pa.Table:
    return pa.table({"files_indexed": pa.array([count], pa.int64())})


def vacuum(_lake: Lake, statement: Vacuum, table: Table) -> pa.Table:
    """Expire and remove files; return the table's path, or with DRY RUN those of the files."""
    report = table.vacuum(retain_hours=statement.retain_hours, dry_run=statement.dry_run)
    paths = report.path if statement.dry_run else (table.location,)
    return pa.table({"path": pa.array(paths, pa.string())})


def analyze(_lake: Lake, statement: AnalyzeTable, table: Table) -> None:
    """ANALYZE TABLE: distinct values of columns, and what each partition holds."""
    if statement.counts_only or table.handle.current_snapshot_id is None:
        return
    if not statement.partitions:
        columns = statement.columns
        named = None if columns is None else [".".join(column) for column in columns]
        table.compute_table_stats(columns=named)
    if table.handle.view().spec.fields and statement.columns is None:
        table.compute_partition_stats()
