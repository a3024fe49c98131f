"""Commits of a change of files: check, rebase, produce, and land by the loop.

Comes in: a `Change` whose files are written. Goes out: `Landed`, `Conflict` or `Unknown` of
`rowlake.model.outcome`, or `Refused`. What is left behind:

- landed: nothing stray (attempts that lost the race have their own files removed, and delete files
  of the change that were merged with those of others are removed too);
- recognised (a batch of a stream that had landed before), conflict, refused: no metadata file of
  ours; the change's data files are the caller's to remove;
- unknown: everything, since the commit may have landed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from rowlake.commit.batches import verdict_on
from rowlake.commit.loop import Attempt, CommitLoop, Recognised, Refused
from rowlake.commit.phases import Phase, reached
from rowlake.commit.rebase import Rebase, Rebased
from rowlake.commit.resolve import resolved
from rowlake.commit.same_table import find_outdated
from rowlake.commit.validate import Breach, find_breach, were_replaced
from rowlake.errors import InternalError
from rowlake.model.outcome import Conflict, Landed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowlake.model.change import Change
    from rowlake.model.format import Capabilities, Payload, Prepared
    from rowlake.model.handle import TableHandle
    from rowlake.model.outcome import Outcome
    from rowlake.storage.files import Storage


@dataclass(frozen=True)
class Committed:
    """How a commit ended, and what it took; `change` is what was committed, as rebased."""

    outcome: Outcome | Refused | Recognised
    snapshot_id: int
    retries: int
    change: Change

    @property
    def skipped(self) -> bool:
        """True where the change is a batch that had landed before."""
        return isinstance(self.outcome, Recognised)


class Rebasing(Protocol):
    """Who brings a change onto a newer head."""

    @property
    def mergeable(self) -> frozenset[str]:
        """The data files whose new deletes are looked at here, row by row."""

    def onto(self, handle: TableHandle) -> Rebased | Breach:
        """Return the change for the head of its branch."""


@dataclass
class Commit:
    """One change on its way into a table.

    `first` makes a metadata change that lands in the same commit, before this one (REPLACE TABLE
    … AS SELECT: the new schema and the new rows, or neither). `operation` is for messages, `files`
    are the change's own, to be removed where it never lands. `written` is everything that the
    commit itself wrote, `attempted` what of it the last attempt did, `unused` what of all that the
    last attempt does not refer to. `rebase` brings the change onto a newer head; by default it
    merges deletes.
    """

    change: Change
    storage: Storage
    first: Callable[[TableHandle], Payload | None] | None = None
    operation: str = "change"
    files: Sequence[str] = ()
    prepared: Prepared | None = None
    attempted: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    written: list[str] = field(default_factory=list)
    rebase: Rebasing | None = None

    def __post_init__(self) -> None:
        """Begin with the change as it came."""
        self._rebase = self.rebase or Rebase(self.change, self.storage)
        self._rebased = Rebased(self.change)
        self._checked: int | None = None
        self._written_for: Capabilities | None = None
        self._loop = CommitLoop(self._attempt, self.change.branch, origin=self)

    def run(self, handle: TableHandle) -> Committed:
        """Commit on top of whatever the branch's head is, as long as that may be done.

        An error leaves no metadata file of ours behind, unless it struck while the catalog was
        swapping and nobody knows the outcome (`may_have_landed`).
        """
        try:
            return self._run(handle)
        except BaseException as error:
            if not self.may_have_landed(error):
                self.storage.delete(self.written)
            raise

    def may_have_landed(self, error: BaseException) -> bool:
        """Return whether an error (Ctrl-C, say) cut off the swap; those of rowlake never do."""
        return self._loop.may_have_landed(error)

    def _run(self, handle: TableHandle) -> Committed:
        reached(Phase.WRITTEN, handle)
        self._written_for = handle.can
        token = handle.format.new_token(handle)
        base, _ = self._with_first(handle)
        self.prepared = handle.format.prepare(base, self.change, token, self.storage)
        self.written += self.prepared.written
        outcome = self._loop.run(handle)
        if isinstance(outcome, Landed) and not outcome.handle.is_in_transaction:
            self.remove_unused()
        if isinstance(outcome, (Conflict, Refused, Recognised)):
            self.storage.delete(self.written)
        made = token
        if isinstance(outcome, Landed):
            made = handle.format.snapshot_id(outcome.handle, token)
        return Committed(outcome, made, self._loop.retries, self._rebased.change)

    def _with_first(self, handle: TableHandle) -> tuple[TableHandle, Payload | None]:
        """Return the table as it is after the change that comes first, and that change."""
        payload = None if self.first is None else self.first(handle)
        return (handle if payload is None else handle.format.altered(handle, payload)), payload

    def recognised(self, handle: TableHandle) -> Recognised | Refused | None:
        """Return whether the table holds the change already, or another query its app id."""
        found = verdict_on(handle, self.change.branch, self.change.app_batch)
        return found if found is None or isinstance(found, Refused) else Recognised(found, handle)

    def _attempt(self, handle: TableHandle, attempt: int) -> Attempt | Refused | Recognised:
        """Check, rebase and produce once."""
        known = self.recognised(handle)
        if known is not None:
            return known
        found = self.bring_onto(handle)
        if isinstance(found, Breach):
            return Refused(found.cause, found.snapshot_id, found.files, same_rows=found.same_rows)
        reached(Phase.VALIDATED, handle)
        return self.make(handle, found, attempt)

    def make(self, handle: TableHandle, prepared: Prepared, attempt: int) -> Attempt | Refused:
        """Produce the commit on top of a head that was checked."""
        base, first = self._with_first(handle)
        concrete = resolved(base, self._rebased.change, self.storage)
        produced = handle.format.produce(
            handle, concrete, prepared, self.storage, attempt=attempt, first=first
        )
        self.attempted, self.unused = produced.written, produced.unused
        self.written += produced.written
        if produced.missing:
            self.storage.delete(produced.written)
            cause = "files that it replaces are no longer in the table"
            replaced = were_replaced(base, self.change, produced.missing)
            return Refused(cause, None, produced.missing, same_rows=replaced)
        return Attempt(produced.payload, produced.written)

    def bring_onto(self, handle: TableHandle) -> Prepared | Breach:
        """Check the change against the head, and merge its deletes with those that landed there."""
        if self.prepared is None:
            raise InternalError(f"A commit to {handle.name} was not prepared.")
        breach = self.find_outdated(handle) or find_breach(
            handle, self.change, merging=self._rebase, checked=self._checked
        )
        rebased = breach or self._rebase.onto(handle)
        if isinstance(rebased, Breach):
            return rebased
        self._checked = handle.head_of(self.change.branch)
        self.written += rebased.written
        before, self._rebased = self._rebased, rebased
        if rebased.change is before.change:
            return self.prepared
        self.prepared, stray = handle.format.prepare_again(
            handle, before.change, rebased.change, self.prepared, self.storage
        )
        if stray:
            self.written += self.prepared.written
        # Deletes merged for the head before are of no use, whether or not the format had prepared
        # them.
        self.storage.delete([*stray, *(set(before.written) - set(rebased.written))])
        return self.prepared

    def find_outdated(self, handle: TableHandle) -> Breach | None:
        """Return why the files may not land in a table that another writer upgraded."""
        cause = handle.format.outdated(handle, self.prepared) if self.first is None else None
        if cause is not None:
            return Breach(cause)
        return find_outdated(self.change, self._written_for or handle.can, handle)

    def remove_unused(self) -> None:
        """Remove what the landed snapshot does not refer to: what was merged, or given up."""
        given_up = _locations(self.change) - _locations(self._rebased.change)
        with suppress(Exception):  # the commit has landed, whatever happens here
            self.storage.delete([*self.unused, *given_up])


def _locations(change: Change) -> set[str]:
    tables = (change.added_data, change.added_deletes, change.images)
    return {location for files in tables for location in files["location"].to_pylist()}
