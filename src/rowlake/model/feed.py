"""Change feeds: where one starts and ends, and the columns that describe a change."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from rowlake.model.handle import MAIN

TYPE, ORDINAL, SNAPSHOT, TIMESTAMP = (
    "_change_type",
    "_change_ordinal",
    "_commit_snapshot_id",
    "_commit_timestamp",
)
INSERT, DELETE = "insert", "delete"
PREIMAGE, POSTIMAGE = "update_preimage", "update_postimage"
CHANGE_TYPES = (INSERT, DELETE, PREIMAGE, POSTIMAGE)

CHANGE_FIELDS = (
    pa.field(TYPE, pa.string(), nullable=False),
    pa.field(ORDINAL, pa.int32(), nullable=False),
    pa.field(SNAPSHOT, pa.int64(), nullable=False),
    pa.field(TIMESTAMP, pa.timestamp("us", tz="UTC"), nullable=False),
)
CHANGE_COLUMNS = tuple(each.name for each in CHANGE_FIELDS)


@dataclass(frozen=True)
class Bounds:
    """Where a feed starts (exclusive) and ends (inclusive): by snapshot, by time (ms) or neither.

    The end is the head of the branch where neither is given.
    """

    start: int | None = None
    end: int | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    branch: str = MAIN
