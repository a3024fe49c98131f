"""The commit loop: check, rebase, produce, swap, and again on a lost race.

Comes in: a `Change` whose files are written. Goes out: `Landed`, `Conflict` or `Unknown` of
`rowlake.catalog.outcome`, or `Refused`. What is left behind:

- landed: nothing stray (attempts that lost the race have their own files removed, and delete files
  of the change that were merged with those of others are removed too);
- conflict, refused: no metadata file of ours; the change's data files are the caller's to remove;
- unknown: everything, since the commit may have landed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rowlake.catalog.commit import commit_updates
from rowlake.catalog.holding import holding
from rowlake.catalog.metadata import apply_updates
from rowlake.catalog.outcome import Conflict, Landed, Unknown
from rowlake.catalog.tables import refresh, table_exists
from rowlake.commit.rebase import Rebase, Rebased
from rowlake.commit.resolve import resolved
from rowlake.commit.retry import Patience, retry_policy
from rowlake.commit.validate import Breach, find_breach
from rowlake.errors import InternalError, RowlakeError
from rowlake.iceberg.producer import head_requirements, prepare, prepare_deletes, produce

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyiceberg.table.update import TableRequirement, TableUpdate

    from rowlake.catalog.handle import TableHandle
    from rowlake.catalog.outcome import Outcome
    from rowlake.iceberg.producer import Prepared
    from rowlake.iceberg.refs import Updates
    from rowlake.model.change import Change
    from rowlake.storage.files import Storage


@dataclass(frozen=True)
class Refused:
    """The change must not land, now or by trying again: what another snapshot did forbids it.

    `retryable`: the operation, planned anew on what the other left, may land.
    """

    cause: str
    snapshot_id: int | None = None
    files: tuple[str, ...] = ()
    retryable: bool = True


@dataclass(frozen=True)
class Committed:
    """How a commit ended, and what it took; `change` is what was committed, as rebased."""

    outcome: Outcome | Refused
    snapshot_id: int
    retries: int
    change: Change


@dataclass(frozen=True)
class Made:
    """One attempt, ready to be swapped in."""

    updates: tuple[TableUpdate, ...]
    requirements: tuple[TableRequirement, ...]


@dataclass
class Commit:
    """One change on its way into a table.

    `first` makes metadata updates that land in the same commit, before the change (REPLACE TABLE
    … AS SELECT: the new schema and the new rows, or neither). `operation` is for messages, `files`
    are the change's own, to be removed where it never lands. `written` is everything that the
    commit itself wrote, `attempted` what of it the last attempt did, `unused` what of all that the
    last attempt's snapshot does not refer to.
    """

    change: Change
    storage: Storage
    first: Callable[[TableHandle], Updates] | None = None
    operation: str = "change"
    files: Sequence[str] = ()
    is_swapping: bool = False
    prepared: Prepared | None = None
    attempted: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    written: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with the change as it came."""
        self._rebase, self._rebased = Rebase(self.change, self.storage), Rebased(self.change)
        self._checked: int | None = None

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
        """Tell whether an error (Ctrl-C, say) cut off the swap; those of rowlake never do."""
        return self.is_swapping and not isinstance(error, RowlakeError)

    def _run(self, handle: TableHandle) -> Committed:
        patience = Patience(retry_policy(handle.metadata.properties))
        snapshot_id = handle.metadata.new_snapshot_id()
        prepared = prepare(self.staged(handle)[0], self.change, snapshot_id, self.storage)
        self.prepared, self.written = prepared, [*self.written, *prepared.written]
        while True:
            outcome = self._attempt(handle, patience.attempts)
            if not isinstance(outcome, Conflict):
                break
            if not patience.wait(lost=_has_moved(handle)):
                break
            newest = self._newest(handle)
            if isinstance(newest, Refused):
                outcome = newest
                break
            handle = newest
        if isinstance(outcome, (Conflict, Refused)):
            self.storage.delete(self.written)
        return Committed(outcome, snapshot_id, patience.attempts, self._rebased.change)

    def _newest(self, handle: TableHandle) -> TableHandle | Refused:
        """Return the table as it is now, where the change can still go there."""
        if handle.is_staged:
            if table_exists(handle.catalog, handle.identifier):
                # Refreshing would turn this into an append to a table that somebody else made.
                return Refused("another writer created a table of that name", retryable=False)
            return handle
        newest = refresh(handle)
        branch = self.change.branch
        if branch in handle.metadata.refs and branch not in newest.metadata.refs:
            return Refused(f"branch {branch} was dropped meanwhile", retryable=False)
        return newest

    def staged(self, handle: TableHandle) -> tuple[TableHandle, Updates]:
        """Return the table as it is after the updates that come first, and these."""
        if self.first is None:
            return handle, ((), ())
        updates, requirements = self.first(handle)
        changed = apply_updates(handle.metadata, handle.metadata_location, updates)
        return replace(handle, metadata=changed), (updates, requirements)

    def _attempt(self, handle: TableHandle, attempt: int) -> Outcome | Refused:
        """Check, rebase, produce and swap once."""
        found = self.bring_onto(handle)
        if isinstance(found, Breach):
            return Refused(found.cause, found.snapshot_id, found.files)
        made = self.make(handle, found, attempt)
        if isinstance(made, Refused):
            return made
        self.is_swapping = True
        outcome = commit_updates(handle, made.updates, made.requirements, origin=self)
        self.is_swapping = False
        if isinstance(outcome, Conflict):
            self.storage.delete(self.attempted)
        elif isinstance(outcome, Landed) and holding(handle) is None:
            self.remove_unused()
        return outcome

    def make(self, handle: TableHandle, prepared: Prepared, attempt: int) -> Made | Refused:
        """Produce the snapshot on top of a head that was checked."""
        staged, (updates, ids_free) = self.staged(handle)
        concrete = resolved(staged, self._rebased.change, self.storage)
        produced = produce(staged, concrete, prepared, self.storage, attempt=attempt)
        self.attempted, self.unused = produced.written, produced.unused
        self.written += produced.written
        if produced.missing:
            self.storage.delete(produced.written)
            cause = "files that it replaces are no longer in the table"
            return Refused(cause, None, produced.missing)
        requirements = (*ids_free, *head_requirements(handle.metadata, self.change))
        return Made((*updates, *produced.updates), requirements)

    def bring_onto(self, handle: TableHandle) -> Prepared | Breach:
        """Check the change against the head, and merge its marks with those that landed there."""
        if self.prepared is None:
            raise InternalError(f"A commit to {handle.name} was not prepared.")
        breach = find_breach(
            handle, self.change, self.storage, marks=self._rebase, checked=self._checked
        )
        rebased = breach or self._rebase.onto(handle)
        if isinstance(rebased, Breach):
            return rebased
        head = handle.metadata.refs.get(self.change.branch)
        self._checked = head.snapshot_id if head else None
        self.written += rebased.written
        before, self._rebased = self._rebased, rebased
        if rebased.change.added_deletes is not before.change.added_deletes:
            outdated = self.prepared.delete_manifests["location"].to_pylist()
            self.prepared = prepare_deletes(handle, rebased.change, self.prepared, self.storage)
            self.written += self.prepared.written
            self.storage.delete([*outdated, *before.written])
        return self.prepared

    def remove_unused(self) -> None:
        """Remove what the landed snapshot does not refer to: merged manifests, merged marks."""
        marks = set(self.change.added_deletes["location"].to_pylist())
        used = set(self._rebased.change.added_deletes["location"].to_pylist())
        with suppress(Exception):  # the commit has landed, whatever happens here
            self.storage.delete([*self.unused, *(marks - used)])


def _has_moved(handle: TableHandle) -> bool:
    """Tell whether others have committed to the table since the handle was made."""
    if handle.is_staged:
        return False
    return refresh(handle).metadata_location != handle.metadata_location


__all__ = ["Commit", "Committed", "Conflict", "Landed", "Refused", "Unknown", "retry_policy"]
