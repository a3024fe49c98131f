"""Several commits land together: the loop of `loop`, over all tables of a transaction.

Comes in: a `HoldingCatalog` with the commits that wait. Goes out: `AllLanded`, `Conflict`,
`Unknown`, or `OvertakenTransaction` where what another writer did forbids one of them. After a
lost race each table's commits are checked against what landed since the transaction first read the
table, and made again on top of it under the same snapshot ids; data files are used again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from rowlake.catalog.many import AllLanded, ManyOutcome, TableChange, commit_many
from rowlake.catalog.tables import refresh
from rowlake.catalog.transaction import HeldCommit, after_commit
from rowlake.commit.data import Commit
from rowlake.commit.loop import Recognised, Refused
from rowlake.commit.retry import Patience, retry_policy
from rowlake.commit.same_table import RECREATED, is_recreated, swap_unless_upgraded
from rowlake.commit.validate import Breach, find_breach
from rowlake.errors import InternalError, RowlakeError
from rowlake.model.outcome import Conflict, Landed

if TYPE_CHECKING:
    from rowlake.catalog.transaction import HeldTable, HoldingCatalog
    from rowlake.commit.retry import RetryPolicy
    from rowlake.model.change import Change
    from rowlake.model.format import Prepared
    from rowlake.model.handle import TableHandle


@dataclass(frozen=True)
class OvertakenTransaction:
    """One commit of the transaction must not land any more, so none does."""

    table: str
    operation: str
    refused: Refused


TransactionOutcome: TypeAlias = ManyOutcome | OvertakenTransaction


@dataclass
class TransactionCommit:
    """All that waits in a transaction, on its way into the tables."""

    catalog: HoldingCatalog
    is_swapping: bool = False
    retries: int = 0

    def run(self) -> TransactionOutcome:
        """Commit all or nothing; files are the caller's to remove where nothing landed."""
        tables = self.catalog.changed
        patience = Patience(_most_patient(tables))
        while True:
            handles = [table.base for table in tables]
            outcome = swap_unless_upgraded(handles, partial(self._swap, tables))
            self.is_swapping = False
            if isinstance(outcome, AllLanded):
                _remove_unused(self.catalog)
            if not isinstance(outcome, Conflict):
                return outcome
            newest = [refresh(table.base) for table in tables]
            lost = any(map(_has_moved, tables, newest))
            if not patience.wait(lost=lost):
                return outcome
            self.retries = patience.attempts
            for table in tables:
                overtaken = self._rebase(table)
                if overtaken is not None:
                    return overtaken

    def may_have_landed(self, error: BaseException) -> bool:
        """Return whether an error (Ctrl-C, say) cut off the swap; those of rowlake never do."""
        return self.is_swapping and not isinstance(error, RowlakeError)

    def _swap(self, tables: list[HeldTable]) -> ManyOutcome:
        changes = [TableChange(one.base, one.updates, one.requirements) for one in tables]
        self.is_swapping = True
        if len(changes) == 1:  # which any catalog can
            change = changes[0]
            payload = (change.updates, change.requirements)
            outcome = change.handle.format.swap(change.handle, payload)
            found = AllLanded((outcome.handle,)) if isinstance(outcome, Landed) else outcome
        else:
            found = commit_many(changes)
        self.is_swapping = False
        return found

    def _rebase(self, table: HeldTable) -> OvertakenTransaction | None:
        """Make a table's commits again on top of what it is now; say which cannot be."""
        newest = refresh(table.base)
        if not _has_moved(table, newest):
            return None
        handle = self.catalog.own(newest)
        commits: list[HeldCommit] = []
        for number, held in enumerate(table.commits):
            remade = self._again(table, number, newest, handle)
            if isinstance(remade, Refused):
                return OvertakenTransaction(newest.name, _operation(held), remade)
            after = after_commit(handle, remade)
            if isinstance(after, Conflict):
                return OvertakenTransaction(newest.name, _operation(held), Refused(after.cause))
            handle = after
            commits.append(remade)
        table.base, table.handle, table.commits = newest, handle, commits
        return None

    def _again(
        self, table: HeldTable, number: int, newest: TableHandle, handle: TableHandle
    ) -> HeldCommit | Refused:
        """Return one commit for `handle`: the newest table with the commits before it."""
        held = table.commits[number]
        commit = held.origin
        if is_recreated(table.read, newest):
            return Refused(RECREATED)
        if not isinstance(commit, Commit):
            return held
        known = commit.recognised(handle)
        if known is not None:
            return _refusal_of_known(known)
        commit.storage.delete(commit.attempted)
        prepared = _brought_onto(table, number, newest, handle)
        if isinstance(prepared, Refused):
            return prepared
        made = commit.make(handle, prepared, self.retries)
        if isinstance(made, Refused):
            return made
        updates, requirements = made.payload
        return HeldCommit(updates, requirements, commit)


def _has_moved(table: HeldTable, newest: TableHandle) -> bool:
    return newest.version != table.base.version


def _brought_onto(
    table: HeldTable, number: int, newest: TableHandle, handle: TableHandle
) -> Prepared | Refused:
    """Check a commit against what landed since the transaction read the table.

    The first of a branch merges its deletes with those of others, as any commit does.
    Those after it were made from snapshots of the transaction's own, and are checked by file.
    """
    commit: Commit = table.commits[number].origin
    branch = commit.change.branch
    if branch in table.read.refs and branch not in newest.refs:
        return Refused(f"branch {branch} was dropped meanwhile")
    before = [one.origin for one in table.commits[:number] if isinstance(one.origin, Commit)]
    if branch not in {one.change.branch for one in before}:
        found = commit.bring_onto(handle)
        return _refusal(found) if isinstance(found, Breach) else found
    own = {location for one in before for location in one.change.added_data["location"].to_pylist()}
    if _copies_row_ids(commit.change, own, newest):
        return Refused(
            "another commit landed first, and it changes rows that the transaction added"
        )
    breach = commit.find_outdated(handle)
    if breach is None and branch in newest.refs:
        breach = find_breach(newest, _since_read(table, commit.change, own))
    if breach:
        return _refusal(breach)
    if commit.prepared is None:
        raise InternalError(f"A commit to {newest.name} waits that was not prepared.")
    return commit.prepared


def _refusal_of_known(known: Recognised | Refused) -> Refused:
    if isinstance(known, Refused):
        return known
    return Refused(known.cause, known.batch.snapshot_id)


def _refusal(breach: Breach) -> Refused:
    return Refused(breach.cause, breach.snapshot_id, breach.files, same_rows=breach.same_rows)


def _copies_row_ids(change: Change, own: set[str], newest: TableHandle) -> bool:
    """Return whether a change wrote rows of the transaction's own files again (spec, Row Lineage).

    Such copies carry the row ids and sequence numbers that those rows had before the race was lost.
    """
    if not newest.can.row_ids or not change.added_data.num_rows:
        return False
    needs = change.requirements
    return not own.isdisjoint(change.removed_data | needs.no_new_deletes_for | needs.files_exist)


def _since_read(table: HeldTable, change: Change, own: set[str]) -> Change:
    """Return a change that is checked from what the transaction read, not from its own snapshots.

    Files that earlier commits of the transaction added are nobody else's to change.
    """
    needs = replace(
        change.requirements,
        starting_snapshot_id=table.read.head_of(change.branch),
        no_new_deletes_for=change.requirements.no_new_deletes_for - own,
        files_exist=change.requirements.files_exist - own,
        no_rows_lost_from=change.requirements.no_rows_lost_from - own,
    )
    return replace(change, requirements=needs)


def _operation(held: HeldCommit) -> str:
    return held.origin.operation if isinstance(held.origin, Commit) else "metadata change"


def _most_patient(tables: list[HeldTable]) -> RetryPolicy:
    policies = [retry_policy(table.base.properties) for table in tables]
    return max(policies, key=lambda policy: policy.retries)


def _remove_unused(catalog: HoldingCatalog) -> None:
    for table in catalog.changed:
        for held in table.commits:
            if isinstance(held.origin, Commit):
                held.origin.remove_unused()


def discard(catalog: HoldingCatalog) -> None:
    """Remove every file that the commits of a transaction wrote; none of them landed."""
    for table in catalog.changed:
        for held in table.commits:
            commit = held.origin
            if isinstance(commit, Commit):
                commit.storage.delete([*commit.files, *commit.written])
