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
from typing import TYPE_CHECKING, Protocol

from rowlake.catalog.commit import commit_updates
from rowlake.catalog.metadata import apply_updates
from rowlake.catalog.outcome import Conflict, Landed, Unknown
from rowlake.catalog.tables import refresh, table_exists
from rowlake.catalog.transaction import holding
from rowlake.commit.rebase import Rebase, Rebased
from rowlake.commit.resolve import resolved
from rowlake.commit.retry import Patience, retry_policy
from rowlake.commit.same_table import (
    MADE_ANEW,
    find_outdated,
    is_made_anew,
    swap_unless_upgraded,
)
from rowlake.commit.validate import Breach, find_breach, were_replaced
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

    `retryable`: the operation, planned anew on what the other left, may land. `same_rows`: what
    the other left has the same rows.
    """

    cause: str
    snapshot_id: int | None = None
    files: tuple[str, ...] = ()
    retryable: bool = True
    same_rows: bool = False


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


class Rebasing(Protocol):
    """Who brings a change onto a newer head."""

    @property
    def marked(self) -> frozenset[str]:
        """The data files whose new deletes are looked at here, row by row."""

    def onto(self, handle: TableHandle) -> Rebased | Breach:
        """Return the change for the head of its branch."""


@dataclass
class Commit:
    """One change on its way into a table.

    `first` makes metadata updates that land in the same commit, before the change (REPLACE TABLE
    … AS SELECT: the new schema and the new rows, or neither). `operation` is for messages, `files`
    are the change's own, to be removed where it never lands. `written` is everything that the
    commit itself wrote, `attempted` what of it the last attempt did, `unused` what of all that the
    last attempt's snapshot does not refer to. `rebase` brings the change onto a newer head; by
    default it merges marks of deleted rows.
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
    rebase: Rebasing | None = None

    def __post_init__(self) -> None:
        """Begin with the change as it came."""
        self._rebase = self.rebase or Rebase(self.change, self.storage)
        self._rebased = Rebased(self.change)
        self._checked: int | None = None
        self._written_for = 0

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
        self._written_for = handle.metadata.format_version
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
        if is_made_anew(handle, newest):
            return Refused(MADE_ANEW, retryable=False)
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
            return Refused(found.cause, found.snapshot_id, found.files, same_rows=found.same_rows)
        made = self.make(handle, found, attempt)
        if isinstance(made, Refused):
            return made
        self.is_swapping = True
        outcome = swap_unless_upgraded(
            [handle],
            lambda: commit_updates(handle, made.updates, made.requirements, origin=self),
        )
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
            replaced = were_replaced(staged, self.change, produced.missing, self.storage)
            return Refused(cause, None, produced.missing, same_rows=replaced)
        requirements = (*ids_free, *head_requirements(handle.metadata, self.change))
        return Made((*updates, *produced.updates), requirements)

    def bring_onto(self, handle: TableHandle) -> Prepared | Breach:
        """Check the change against the head, and merge its marks with those that landed there."""
        if self.prepared is None:
            raise InternalError(f"A commit to {handle.name} was not prepared.")
        breach = self.find_outdated(handle) or find_breach(
            handle, self.change, self.storage, marks=self._rebase, checked=self._checked
        )
        rebased = breach or self._rebase.onto(handle)
        if isinstance(rebased, Breach):
            return rebased
        head = handle.metadata.refs.get(self.change.branch)
        self._checked = head.snapshot_id if head else None
        self.written += rebased.written
        before, self._rebased = self._rebased, rebased
        if rebased.change.added_data is not before.change.added_data:
            outdated = self.prepared.written
            snapshot_id = self.prepared.snapshot_id
            self.prepared = prepare(handle, rebased.change, snapshot_id, self.storage)
        elif rebased.change.added_deletes is not before.change.added_deletes:
            outdated = tuple(self.prepared.delete_manifests["location"].to_pylist())
            self.prepared = prepare_deletes(handle, rebased.change, self.prepared, self.storage)
        else:
            return self.prepared
        self.written += self.prepared.written
        self.storage.delete([*outdated, *before.written])
        return self.prepared

    def find_outdated(self, handle: TableHandle) -> Breach | None:
        """Return why the files may not land in a table that was upgraded meanwhile."""
        return find_outdated(self.change, self._written_for, handle)

    def remove_unused(self) -> None:
        """Remove what the landed snapshot does not refer to: what was merged, or given up."""
        given_up = _locations(self.change) - _locations(self._rebased.change)
        with suppress(Exception):  # the commit has landed, whatever happens here
            self.storage.delete([*self.unused, *given_up])


def _locations(change: Change) -> set[str]:
    tables = (change.added_data, change.added_deletes)
    return {location for files in tables for location in files["location"].to_pylist()}


def _has_moved(handle: TableHandle) -> bool:
    """Tell whether others have committed to the table since the handle was made."""
    if handle.is_staged:
        return False
    return refresh(handle).metadata_location != handle.metadata_location


__all__ = ["Commit", "Committed", "Conflict", "Landed", "Refused", "Unknown", "retry_policy"]
