"""Whether a batch of a stream has landed already: asked before any work, and at every attempt.

Comes in: a table, a branch and an `AppBatch`. Goes out: nothing (the batch may land), the batch
that says it is in the table (`LandedBatch`), or why it must not land at all (`Refused`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.commit.loop import Refused
from rowlake.errors import CommitConflictError, InvalidStatementError

if TYPE_CHECKING:
    from rowlake.model.app_batch import AppBatch, LandedBatch
    from rowlake.model.handle import TableHandle


def verdict_on(
    handle: TableHandle, branch: str, batch: AppBatch | None
) -> LandedBatch | Refused | None:
    """Return what a table at this head says of a batch; None where it may land.

    A run of a query replays nothing but the last batch of its checkpoint. One that comes with an
    older batch has lost its checkpoint, and skipping would lose rows without a word.
    """
    if batch is None:
        return None
    last = handle.format.last_landed(handle, branch, batch.app_id)
    if last is None:
        return None
    if _is_of_another_run(last, batch):
        return Refused(
            f"another query writes to it with app id {batch.app_id}: run "
            f"{last.run_id or 'unknown'} landed batch {last.batch_id} as snapshot "
            f"{last.snapshot_id}. Stop one of the two, and give each an app id of its own",
            last.snapshot_id,
            retryable=False,
        )
    if batch.run_id and batch.batch_id < last.batch_id:
        return Refused(
            f"the query with app id {batch.app_id} begins at batch {batch.batch_id}, but batch "
            f"{last.batch_id} has landed: its checkpoint is new or older than the table. Use the "
            "old checkpoint, or another app id to write all rows again",
            last.snapshot_id,
            retryable=False,
        )
    return last if last.batch_id >= batch.batch_id else None


def has_landed(
    handle: TableHandle, branch: str, batch: AppBatch | None, operation: str, *, staged: bool
) -> bool:
    """Return whether there is nothing left to do for a batch; asked before any work.

    Raises CommitConflictError where another query uses the app id.
    """
    if batch is not None and staged:
        raise InvalidStatementError(
            f"Cannot stage batch {batch.batch_id} of {batch.app_id} in {handle.name} (spark.wap.id "
            "is set): a batch of a stream is part of a branch, or it would be written again. Use "
            "spark.wap.branch, or branch=."
        )
    found = verdict_on(handle, branch, batch)
    if isinstance(found, Refused):
        raise CommitConflictError(
            operation, handle.name, found.cause, snapshot_id=found.snapshot_id
        )
    return found is not None


def _is_of_another_run(last: LandedBatch, batch: AppBatch) -> bool:
    is_new = last.batch_id > batch.began_after
    return bool(batch.run_id) and last.run_id != batch.run_id and is_new
