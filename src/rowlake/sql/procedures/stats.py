"""CALL compute_table_stats, compute_partition_stats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.sql.procedures.procedure import Procedure, procedure, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.lake import Lake


def _compute_table_stats(
    lake: Lake, table: str, snapshot_id: int | None, columns: Sequence[str] | None
) -> pa.Table:
    report = table_of(lake, table).compute_table_stats(snapshot_id=snapshot_id, columns=columns)
    return _file("statistics_file", report.statistics_file)


def _compute_partition_stats(lake: Lake, table: str, snapshot_id: int | None) -> pa.Table:
    report = table_of(lake, table).compute_partition_stats(snapshot_id=snapshot_id)
    return _file("partition_statistics_file", report.partition_statistics_file)


def _file(name: str, location: str | None) -> pa.Table:
    """Return a row with a location; no row where no file was made."""
    return pa.table({name: pa.array([] if location is None else [location], pa.string())})


PROCEDURES: dict[str, Procedure] = {
    "compute_partition_stats": procedure(_compute_partition_stats, "table", snapshot_id=None),
    "compute_table_stats": procedure(_compute_table_stats, "table", snapshot_id=None, columns=None),
}
