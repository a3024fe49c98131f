"""Snapshots as rows of DESCRIBE HISTORY."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.secrets import redacted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.model.view import SnapshotInfo

LATEST_MS = 253_402_300_799_999  # the end of the year 9999, where Python's times end
TEXTS = pa.map_(pa.string(), pa.string())


def history_rows(snapshots: Sequence[SnapshotInfo]) -> pa.Table:
    """Return one row per snapshot, in their order."""
    times = [time_of(one.timestamp_ms) for one in snapshots]
    summary = [list(redacted(one.summary).items()) for one in snapshots]
    return pa.table(
        {
            "version": pa.array([one.sequence_number for one in snapshots], pa.int64()),
            "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
            "operation": pa.array([one.operation for one in snapshots], pa.string()),
            "snapshot_id": pa.array([one.snapshot_id for one in snapshots], pa.int64()),
            "parent_id": pa.array([one.parent_id for one in snapshots], pa.int64()),
            "operation_metrics": pa.array(summary, TEXTS),
        }
    )


def time_of(milliseconds: int) -> dt.datetime:
    """Return ms since 1970 as a time."""
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.timezone.utc)
