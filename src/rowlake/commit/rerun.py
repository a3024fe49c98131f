"""An operation that another writer's commit made invalid, run again from planning.

For verbs that can be run twice to the same end: their source is staged or a predicate, and a
refused commit has left nothing behind. Each run plans on the newest head, so what lands is what the
operation means after the other's commit: racing inserts of one key end as one row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from rowlake.catalog.tables import refresh
from rowlake.commit.retry import Patience, retry_policy
from rowlake.errors import CommitConflictError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.catalog.handle import TableHandle

Done = TypeVar("Done")


def rerun_on_conflict(
    handle: TableHandle, run: Callable[[TableHandle], Done], *, attempts: int | None = None
) -> Done:
    """Return what `run` returns, which is tried again on the newest table after a conflict.

    Only conflicts that are `retryable` are. Each run loses to a commit that landed, so runs are
    bounded by `commit.retry.total-timeout-ms`, and by `attempts` where given; with
    `commit.retry.num-retries` = 0 there is one.
    """
    patience = Patience(retry_policy(handle.metadata.properties))
    while True:
        try:
            return run(handle)
        except CommitConflictError as error:
            is_last = attempts is not None and patience.attempts + 1 >= attempts
            if not error.retryable or is_last or not patience.wait(lost=True):
                raise
        handle = refresh(handle)
