"""Commits that change metadata only: refs, schemas, specs, properties, statistics.

Comes in: a `MetadataChange`, or a function that makes a payload from the newest metadata. Goes
out: the handle after the commit; a lost race is tried again from what the winner left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from rowlake.commit.loop import Attempt, CommitLoop, Refused
from rowlake.errors import CommitConflictError, CommitStateUnknownError
from rowlake.model.following import has_landed
from rowlake.model.outcome import Landed, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.model.format import Payload
    from rowlake.model.handle import TableHandle
    from rowlake.model.metadata_change import MetadataChange

MakePayload: TypeAlias = "Callable[[TableHandle], Payload | None]"


def commit_metadata(
    handle: TableHandle, operation: str, change: MetadataChange | MakePayload
) -> TableHandle:
    """Commit a change to the metadata; nothing to do commits nothing."""

    def make(newest: TableHandle, _attempt: int) -> Attempt | None:
        payload = change(newest) if callable(change) else newest.format.alter(newest, change)
        return None if payload is None else Attempt(payload)

    outcome = CommitLoop(make).run(handle)
    if isinstance(outcome, Landed):
        if outcome.handle is not handle:
            has_landed(outcome.handle)
        return outcome.handle
    if isinstance(outcome, Unknown):
        raise CommitStateUnknownError(handle.name, None, outcome.cause)
    gave_up = not isinstance(outcome, Refused)
    raise CommitConflictError(operation, handle.name, outcome.cause, gave_up=gave_up)
