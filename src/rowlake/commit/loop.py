"""The commit loop: make an attempt, swap it in, and again on what the winner of a race left.

Data, metadata and manifest commits differ in how they make an attempt for a head (`Make`); who
may land, how long to go on and what to remove is decided here, once. Each attempt passes the
phases of `rowlake.commit.phases`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rowlake.commit.phases import Phase, reached
from rowlake.commit.retry import Patience, retry_policy
from rowlake.commit.same_table import RECREATED, is_recreated, swap_unless_upgraded
from rowlake.errors import CorruptTableError, RowlakeError
from rowlake.model.outcome import Conflict, Landed, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.model.app_batch import LandedBatch
    from rowlake.model.format import Payload
    from rowlake.model.handle import TableHandle


@dataclass(frozen=True)
class Refused:
    """The change must not land, now or by trying again: what another snapshot did forbids it.

    `retryable`: the operation, planned again on what the other left, may land. `same_rows`: what
    the other left has the same rows.
    """

    cause: str
    snapshot_id: int | None = None
    files: tuple[str, ...] = ()
    retryable: bool = True
    same_rows: bool = False


@dataclass(frozen=True)
class Attempt:
    """What to swap in; `written` are files that are stray where it does not land."""

    payload: Payload
    written: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recognised:
    """The change is a batch of a stream that the table holds already."""

    batch: LandedBatch
    handle: TableHandle

    @property
    def cause(self) -> str:
        """Why it does not land."""
        return f"batch {self.batch.batch_id} of its stream has landed already"


# None: there is nothing to change at this head.
Made: TypeAlias = Attempt | Refused | Recognised | None
Make: TypeAlias = "Callable[[TableHandle, int], Made]"


@dataclass
class CommitLoop:
    """One commit on its way into a table.

    `branch` is one that must not vanish while it is tried. In a transaction the commit waits, and
    `origin` with it: what can make it again.
    """

    make: Make
    branch: str | None = None
    origin: object = None
    retries: int = 0
    is_swapping: bool = False

    def run(self, handle: TableHandle) -> Outcome | Refused | Recognised:
        """Return how it ended; landed with the same handle where there was nothing to change."""
        patience = Patience(retry_policy(handle.properties))
        while True:
            self.retries = patience.attempts
            outcome = self._attempt(handle, patience.attempts)
            if not isinstance(outcome, Conflict):
                return outcome
            if not patience.wait(lost=has_moved(handle)):
                return outcome
            newest = self._newest(handle)
            if isinstance(newest, Refused):
                return newest
            handle = newest

    def _attempt(self, handle: TableHandle, attempt: int) -> Outcome | Refused | Recognised:
        try:
            made = self.make(handle, attempt)
        except CorruptTableError as error:
            if not is_expired_file(error, handle):
                raise
            return Conflict(f"snapshots were expired by another writer ({error.location} is gone)")
        if made is None:
            return Landed(handle)
        if isinstance(made, (Refused, Recognised)):
            return made
        outcome = self._swap(handle, made)
        if isinstance(outcome, Conflict):
            handle.storage.delete(made.written)
        return outcome

    def may_have_landed(self, error: BaseException) -> bool:
        """Return whether an error (Ctrl-C, say) cut off the swap; those of rowlake never do."""
        return self.is_swapping and not isinstance(error, RowlakeError)

    def _swap(self, handle: TableHandle, made: Attempt) -> Outcome:
        reached(Phase.PRODUCED, handle)
        self.is_swapping = True
        outcome = swap_unless_upgraded(
            [handle], lambda: handle.format.swap(handle, made.payload, origin=self.origin)
        )
        reached(Phase.SWAPPED, handle)
        self.is_swapping = False
        return outcome

    def _newest(self, handle: TableHandle) -> TableHandle | Refused:
        """Return the table as it is now, where the change can still go there."""
        if handle.is_staged:
            if handle.format.exists(handle):
                # Refreshing would turn this into an append to a table that somebody else made.
                return Refused("another writer created a table of that name", retryable=False)
            return handle
        newest = handle.format.refresh(handle)
        if is_recreated(handle, newest):
            return Refused(RECREATED, retryable=False)
        if self.branch in handle.refs and self.branch not in newest.refs:
            return Refused(f"branch {self.branch} was dropped meanwhile", retryable=False)
        return newest


def is_expired_file(error: CorruptTableError, read: TableHandle) -> bool:
    """Return whether a file is missing because snapshots have been expired since the read."""
    if not error.is_missing or read.is_staged:
        return False
    kept = {snapshot.snapshot_id for snapshot in read.format.refresh(read).snapshots}
    return any(snapshot.snapshot_id not in kept for snapshot in read.snapshots)


def has_moved(handle: TableHandle) -> bool:
    """Return whether others have committed to the table since the handle was made."""
    return not handle.is_staged and handle.format.refresh(handle).version != handle.version
