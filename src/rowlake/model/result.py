"""What an operation did, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from rowlake.model.report import Report

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Result(Report):
    """The outcome of a write: one commit (or none, where nothing had to change).

    `snapshot_id` is None where nothing was committed. `skipped`: the batch of a stream had landed
    before, and nothing was done. Counts of rows are exact. `bytes_read` is
    what changes of rows read of the table's data and delete files: the footers, and the columns
    that were needed of the row groups that were (ORC: whole stripes). What is in memory from
    before is not read, and what Spark reads to find rows is not counted.
    """

    always_shown: ClassVar[tuple[str, ...]] = ("operation", "snapshot_id")

    operation: str
    snapshot_id: int | None = None
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_inserted: int = 0
    rows_copied: int = 0
    rows_unchanged: int = 0
    data_files_added: int = 0
    data_files_removed: int = 0
    delete_files_added: int = 0
    delete_files_removed: int = 0
    bytes_written: int = 0
    bytes_read: int = 0
    files_considered: int = 0
    files_pruned: int = 0
    files_matched: int = 0
    retries: int = 0
    skipped: bool = False
    seconds: float = 0.0
    phases: Mapping[str, float] = field(default_factory=dict)
