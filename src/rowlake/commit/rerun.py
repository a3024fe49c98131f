"""Run an operation again from planning when another commit made it invalid.

An operation that did not land has left nothing behind, so running it again on the newest table is
what its user would do. What lands is what the operation means after the other's commit: racing
inserts of one key end as one row, and `SET n = n + 1` adds to what the other wrote.

Two things end a run early: a conflict, and a file that vanished because the snapshot that was read
has been expired in the meantime. A file that the newest metadata still needs is damage, and raised.

With the table property `rowlake.commit.replan` = false, conflicts with commits that changed rows
are raised at once: for users who decide themselves what a conflict means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from rowlake.commit.loop import is_expired_file
from rowlake.commit.retry import Patience, retry_policy
from rowlake.commit.same_table import RECREATED, is_recreated
from rowlake.errors import CommitConflictError, CorruptTableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.errors import RowlakeError
    from rowlake.model.handle import TableHandle

REPLAN = "rowlake.commit.replan"

Done = TypeVar("Done")


def rerun_on_conflict(
    handle: TableHandle,
    run: Callable[[TableHandle], Done],
    *,
    attempts: int | None = None,
    is_bound: bool = False,
) -> Done:
    """Return what `run` returns; after a conflict it runs again on the newest table.

    `is_bound`: `run` uses columns of the schema that `handle` has, so it fits no other schema.
    Each run loses to a commit that landed, so runs are bounded by `commit.retry.total-timeout-ms`,
    and by `attempts` where given; with `commit.retry.num-retries` = 0 there is one.
    """
    patience = Patience(retry_policy(handle.properties))
    while True:
        try:
            return run(handle)
        except (CommitConflictError, CorruptTableError) as error:
            newest = _newest(handle, error)
            fits = newest is not None and (not is_bound or _has_same_schema(handle, newest))
            is_last = attempts is not None and patience.attempts + 1 >= attempts
            if newest is None or not fits or is_last or not patience.wait(lost=True):
                raise
        handle = newest


def _has_same_schema(read: TableHandle, newest: TableHandle) -> bool:
    """Return whether columns of one handle mean the same in the other; not all formats number."""
    return newest.schema_id == read.schema_id and newest.view().schema.arrow.equals(
        read.view().schema.arrow
    )


def _newest(read: TableHandle, error: RowlakeError) -> TableHandle | None:
    """Return the table to run on after an error; None where that would be of no use."""
    if isinstance(error, CommitConflictError) and not _may_help(error, read):
        return None
    if isinstance(error, CorruptTableError) and not is_expired_file(error, read):
        return None
    newest = read.format.refresh(read)
    if is_recreated(read, newest):
        operation = error.operation if isinstance(error, CommitConflictError) else "the operation"
        raise CommitConflictError(operation, read.name, RECREATED) from error
    return newest


def _may_help(conflict: CommitConflictError, read: TableHandle) -> bool:
    if conflict.same_rows:
        return True
    return conflict.retryable and read.properties.get(REPLAN, "true").lower() != "false"
