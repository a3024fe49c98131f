"""The commit loop: check, produce, swap, and again on a lost race.

Comes in: a `Change` whose files are written. Goes out: `Landed`, `Conflict` or `Unknown` of
`rowlake.catalog.outcome`, or `Refused`. What is left behind:

- landed: nothing stray (attempts that lost the race have their own files removed);
- conflict, refused: no metadata file of ours; the change's data files are the caller's to remove;
- unknown: everything, since the commit may have landed.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rowlake.catalog.commit import commit_updates
from rowlake.catalog.metadata import apply_updates
from rowlake.catalog.outcome import Conflict, Landed, Unknown
from rowlake.catalog.tables import refresh, table_exists
from rowlake.commit.resolve import resolved
from rowlake.commit.validate import find_breach
from rowlake.errors import RowlakeError
from rowlake.iceberg.producer import head_requirements, prepare, produce
from rowlake.model.properties import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rowlake.catalog.handle import TableHandle
    from rowlake.catalog.outcome import Outcome
    from rowlake.iceberg.producer import Prepared
    from rowlake.iceberg.refs import Updates
    from rowlake.model.change import Change
    from rowlake.storage.files import Storage


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long to try (`commit.retry.*`); times in ms."""

    retries: int = 4
    min_wait_ms: int = 100
    max_wait_ms: int = 60_000
    total_timeout_ms: int = 1_800_000

    def wait_s(self, attempt: int) -> float:
        """Return how long to wait before the attempt after this one: exponential, jittered."""
        ceiling = min(self.max_wait_ms, self.min_wait_ms * 2**attempt)
        return float(random.uniform(0.5, 1.0) * ceiling / 1000)


def retry_policy(properties: Mapping[str, str]) -> RetryPolicy:
    """Return the policy that the table's properties ask for."""
    return RetryPolicy(
        whole_number(properties, "commit.retry.num-retries", 4),
        whole_number(properties, "commit.retry.min-wait-ms", 100),
        whole_number(properties, "commit.retry.max-wait-ms", 60_000),
        whole_number(properties, "commit.retry.total-timeout-ms", 1_800_000),
    )


@dataclass(frozen=True)
class Refused:
    """The change must not land, now or by trying again: what another snapshot did forbids it."""

    cause: str
    snapshot_id: int | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Committed:
    """How a commit ended, and what it took."""

    outcome: Outcome | Refused
    snapshot_id: int
    retries: int


@dataclass
class Commit:
    """One change on its way into a table.

    `first` makes metadata updates that land in the same commit, before the change (REPLACE TABLE
    … AS SELECT: the new schema and the new rows, or neither).
    """

    change: Change
    storage: Storage
    first: Callable[[TableHandle], Updates] | None = None
    is_swapping: bool = False
    _written: list[str] = field(default_factory=list)

    def run(self, handle: TableHandle) -> Committed:
        """Commit on top of whatever the branch's head is, as long as that may be done.

        An error leaves no metadata file of ours behind, unless it struck while the catalog was
        swapping and nobody knows the outcome (`may_have_landed`).
        """
        try:
            return self._run(handle)
        except BaseException as error:
            if not self.may_have_landed(error):
                self.storage.delete(self._written)
            raise

    def may_have_landed(self, error: BaseException) -> bool:
        """Tell whether an error (Ctrl-C, say) cut off the swap; those of rowlake never do."""
        return self.is_swapping and not isinstance(error, RowlakeError)

    def _run(self, handle: TableHandle) -> Committed:
        policy = retry_policy(handle.metadata.properties)
        snapshot_id = handle.metadata.new_snapshot_id()
        prepared = prepare(self.staged(handle)[0], self.change, snapshot_id, self.storage)
        self._written += prepared.written
        deadline = time.monotonic() + policy.total_timeout_ms / 1000
        had_branch = self.change.branch in handle.metadata.refs
        attempt = 0
        while True:
            outcome = self.attempt(handle, prepared, attempt)
            is_last = attempt >= policy.retries or time.monotonic() > deadline
            if not isinstance(outcome, Conflict) or is_last:
                break
            time.sleep(policy.wait_s(attempt))
            if handle.is_staged and table_exists(handle.catalog, handle.identifier):
                # Refreshing would turn this into an append to a table that somebody else made.
                outcome = Refused("another writer created a table of that name")
                break
            handle = handle if handle.is_staged else refresh(handle)
            if had_branch and self.change.branch not in handle.metadata.refs:
                outcome = Refused(f"branch {self.change.branch} was dropped meanwhile")
                break
            attempt += 1
        if isinstance(outcome, (Conflict, Refused)):
            self.storage.delete(prepared.written)
        return Committed(outcome, snapshot_id, attempt)

    def staged(self, handle: TableHandle) -> tuple[TableHandle, Updates]:
        """Return the table as it is after the updates that come first, and these."""
        if self.first is None:
            return handle, ((), ())
        updates, requirements = self.first(handle)
        changed = apply_updates(handle.metadata, handle.metadata_location, updates)
        return replace(handle, metadata=changed), (updates, requirements)

    def attempt(self, handle: TableHandle, prepared: Prepared, attempt: int) -> Outcome | Refused:
        """Check, produce and swap once."""
        breach = find_breach(handle, self.change, self.storage)
        if breach:
            return Refused(breach.cause, breach.snapshot_id, breach.files)
        staged, (updates, ids_free) = self.staged(handle)
        concrete = resolved(staged, self.change, self.storage)
        produced = produce(staged, concrete, prepared, self.storage, attempt=attempt)
        self._written += produced.written
        if produced.missing:
            self.storage.delete(produced.written)
            cause = "files that it replaces are no longer in the table"
            return Refused(cause, None, produced.missing)
        requirements = (*ids_free, *head_requirements(handle.metadata, self.change))
        self.is_swapping = True
        outcome = commit_updates(handle, (*updates, *produced.updates), requirements)
        self.is_swapping = False
        if isinstance(outcome, Conflict):
            self.storage.delete(produced.written)
        return outcome


__all__ = ["Commit", "Committed", "Conflict", "Landed", "Refused", "Unknown", "retry_policy"]
