"""Commits that replace manifests by others with the same files.

Comes in: which manifests to write anew. Goes out: the table after the commit. No check of
isolation is needed, since no row and no file changes: after a lost race the same new manifests land
beside what others added, as long as all that they replace is still listed; else they are made anew
from what is there. A failure leaves no file of ours, an unknown outcome leaves all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.catalog.commit import commit_updates
from rowlake.catalog.outcome import Conflict, Landed
from rowlake.catalog.tables import refresh
from rowlake.commit.retry import Patience, retry_policy
from rowlake.errors import CommitConflictError, CommitStateUnknownError, RowlakeError
from rowlake.iceberg.manifest_list import read_manifest_list
from rowlake.iceberg.manifest_rewrite import Rewritten, rewrite_manifests
from rowlake.iceberg.metadata import view_of
from rowlake.iceberg.producer import head_requirements, new_manifest_set, produce_listing
from rowlake.model.change import Change, Operation
from rowlake.model.files import MANIFESTS

if TYPE_CHECKING:
    from rowlake.catalog.handle import TableHandle
    from rowlake.catalog.outcome import Outcome
    from rowlake.iceberg.manifest_rewrite import Clustering
    from rowlake.storage.files import Storage


@dataclass(frozen=True)
class ManifestsReplaced:
    """How it ended; `snapshot_id` is None where nothing was to do."""

    handle: TableHandle
    rewritten: Rewritten
    snapshot_id: int | None = None
    retries: int = 0


@dataclass
class ManifestCommit:
    """One rewriting of manifests on its way into a branch."""

    clustering: Clustering
    storage: Storage
    branch: str = "main"
    operation: str = "rewrite_manifests"
    is_swapping: bool = False
    written: list[str] = field(default_factory=list)

    def plan(self, handle: TableHandle) -> Rewritten:
        """Return what the commit would replace at this head; nothing is written."""
        return self._rewritten(handle, self._listed(handle), 0, dry_run=True)

    def run(self, handle: TableHandle) -> ManifestsReplaced:
        """Rewrite and commit; a lost race is tried again on what the winner left."""
        try:
            return self._run(handle)
        except BaseException as error:
            may_have_landed = self.is_swapping and not isinstance(error, RowlakeError)
            if not may_have_landed and not isinstance(error, CommitStateUnknownError):
                self.storage.delete(self.written)
            raise

    def _run(self, handle: TableHandle) -> ManifestsReplaced:
        patience = Patience(retry_policy(handle.metadata.properties))
        snapshot_id = handle.metadata.new_snapshot_id()
        rewritten: Rewritten | None = None
        while True:
            listed = self._listed(handle)
            if rewritten is None or not rewritten.fits(listed):
                self.storage.delete(self.written)
                rewritten = self._rewritten(handle, listed, snapshot_id)
                self.written = list(rewritten.written)
            if not rewritten.replaced.num_rows:
                return ManifestsReplaced(handle, rewritten, None, patience.attempts)
            outcome = self._attempt(handle, listed, rewritten, snapshot_id, patience.attempts)
            if isinstance(outcome, Landed):
                return ManifestsReplaced(outcome.handle, rewritten, snapshot_id, patience.attempts)
            if not isinstance(outcome, Conflict):
                raise CommitStateUnknownError(handle.name, snapshot_id, outcome.cause)
            newest = refresh(handle)
            if not patience.wait(lost=newest.metadata_location != handle.metadata_location):
                raise CommitConflictError(self.operation, handle.name, outcome.cause)
            handle = refresh(newest)

    def _listed(self, handle: TableHandle) -> pa.Table:
        if self.branch not in handle.metadata.refs:
            return MANIFESTS.empty_table()
        snapshot = view_of(handle, ref=self.branch).snapshot
        if snapshot is None or snapshot.manifest_list is None:
            return MANIFESTS.empty_table()
        return read_manifest_list(snapshot.manifest_list, self.storage)

    def _rewritten(
        self, handle: TableHandle, listed: pa.Table, snapshot_id: int, *, dry_run: bool = False
    ) -> Rewritten:
        target = new_manifest_set(handle, view_of(handle), snapshot_id, self.storage)
        self.written = target.written
        return rewrite_manifests(target, listed, self.clustering, dry_run=dry_run)

    def _attempt(
        self,
        handle: TableHandle,
        listed: pa.Table,
        rewritten: Rewritten,
        snapshot_id: int,
        attempt: int,
    ) -> Outcome:
        """Produce the snapshot for one head and swap it in."""
        kept = rewritten.kept(listed)
        manifests = pa.concat_tables([rewritten.added, kept])
        change = Change(
            Operation.REPLACE, branch=self.branch, properties=_summary(rewritten, kept.num_rows)
        )
        produced = produce_listing(
            handle, change, snapshot_id, manifests, self.storage, attempt=attempt
        )
        self.written += produced.written
        requirements = head_requirements(handle.metadata, change)
        self.is_swapping = True
        outcome = commit_updates(handle, produced.updates, requirements)
        self.is_swapping = False
        if isinstance(outcome, Conflict):
            self.storage.delete(produced.written)
        return outcome


def _summary(rewritten: Rewritten, kept: int) -> dict[str, str]:
    return {
        "manifests-created": str(rewritten.added.num_rows),
        "manifests-kept": str(kept),
        "manifests-replaced": str(rewritten.replaced.num_rows),
        "entries-processed": str(rewritten.entries),
    }
