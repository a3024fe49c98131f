"""Commits that change metadata only: refs, schemas, specs, properties.

Comes in: a function that builds updates from the newest metadata. Goes out: the handle after the
commit; a lost race is tried again from what the winner left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.catalog.commit import commit_updates
from rowlake.catalog.outcome import Conflict, Landed
from rowlake.catalog.tables import refresh
from rowlake.commit.retry import Patience, retry_policy
from rowlake.commit.same_table import MADE_ANEW, is_made_anew
from rowlake.errors import CommitConflictError, CommitStateUnknownError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.catalog.handle import TableHandle
    from rowlake.iceberg.refs import Updates


def commit_metadata(
    handle: TableHandle, operation: str, make: Callable[[TableHandle], Updates]
) -> TableHandle:
    """Commit what `make` builds from the metadata; nothing to do commits nothing."""
    patience = Patience(retry_policy(handle.metadata.properties))
    while True:
        updates, requirements = make(handle)
        if not updates:
            return handle
        outcome = commit_updates(handle, updates, requirements)
        if isinstance(outcome, Landed):
            return outcome.handle
        if not isinstance(outcome, Conflict):
            raise CommitStateUnknownError(handle.name, None, outcome.cause)
        newest = refresh(handle)
        if not patience.wait(lost=newest.metadata_location != handle.metadata_location):
            raise CommitConflictError(operation, handle.name, outcome.cause)
        newest = refresh(newest)
        if is_made_anew(handle, newest):
            raise CommitConflictError(operation, handle.name, MADE_ANEW)
        handle = newest
