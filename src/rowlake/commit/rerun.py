"""An operation that another writer's commit made invalid, run again from planning.

For verbs that can be run twice to the same end: their source is staged or a predicate, and a
refused commit has left nothing behind. Each run plans on the newest head, so what lands is what the
operation means after the other's commit: racing inserts of one key end as one row.

Which conflicts are worth it is the verb's to say (`Allows`). All others, and any where the table
was recreated or has another schema by now, are raised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from rowlake.commit.retry import Patience, retry_policy
from rowlake.errors import CommitConflictError

if TYPE_CHECKING:
    from rowlake.model.handle import TableHandle

Done = TypeVar("Done")


@dataclass(frozen=True)
class OvertakenOperation:
    """An operation that did not land: the conflict, the table as it read it and as it is now."""

    conflict: CommitConflictError
    read: TableHandle
    newest: TableHandle


Allows: TypeAlias = Callable[[OvertakenOperation], bool]


def by_any_change(overtaken: OvertakenOperation) -> bool:
    """Allow a rerun wherever it may land."""
    return overtaken.conflict.retryable


def by_same_rows(overtaken: OvertakenOperation) -> bool:
    """Allow a rerun where what stood in the way changed no rows (a compaction)."""
    return overtaken.conflict.same_rows


def by_nothing_else(branch: str) -> Allows:
    """Allow a rerun where the rows of the branch are those that were read, only in other files.

    For operations that hold values which they read from the table itself.
    """

    def allows(overtaken: OvertakenOperation) -> bool:
        newest, start = overtaken.newest, overtaken.read.head_of(branch)
        since = newest.format.commits_since(newest, branch, start)
        replaced = since is not None and not any(one.changes_rows for one in since)
        return overtaken.conflict.same_rows and replaced

    return allows


def rerun_on_conflict(
    handle: TableHandle,
    run: Callable[[TableHandle], Done],
    *,
    attempts: int | None = None,
    allows: Allows = by_any_change,
) -> Done:
    """Return what `run` returns, which is tried again on the newest table after a conflict.

    Each run loses to a commit that landed, so runs are bounded by `commit.retry.total-timeout-ms`,
    and by `attempts` where given; with `commit.retry.num-retries` = 0 there is one.
    """
    patience = Patience(retry_policy(handle.properties))
    while True:
        try:
            return run(handle)
        except CommitConflictError as error:
            if not (error.retryable or error.same_rows):
                raise
            newest = handle.format.refresh(handle)
            may = _is_same_table(handle, newest) and allows(
                OvertakenOperation(error, handle, newest)
            )
            is_last = attempts is not None and patience.attempts + 1 >= attempts
            if not may or is_last or not patience.wait(lost=True):
                raise
        handle = newest


def _is_same_table(read: TableHandle, newest: TableHandle) -> bool:
    """Return whether what was bound to the columns of one table fits the other."""
    return (read.uuid, read.schema_id) == (newest.uuid, newest.schema_id)
