"""Commits that replace manifests by others with the same files.

Comes in: which manifests to rewrite. Goes out: the table after the commit. No check of
isolation is needed, since no row and no file changes: after a lost race the same new manifests land
beside what others added, as long as all that they replace is still listed; else they are rewritten
from what is there. A failure leaves no file of ours, an unknown outcome leaves all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.commit.loop import Attempt, CommitLoop, Refused
from rowlake.errors import CommitConflictError, CommitStateUnknownError, InternalError
from rowlake.iceberg.manifest_list import read_manifest_list
from rowlake.iceberg.manifest_rewrite import RewrittenManifests, rewrite_manifests
from rowlake.iceberg.producer import new_manifest_set, produce_listing
from rowlake.maintain.iceberg.handles import iceberg_handle
from rowlake.model.change import Change, Operation
from rowlake.model.files import MANIFESTS
from rowlake.model.outcome import Landed, Unknown
from rowlake.model.provenance import noted

if TYPE_CHECKING:
    from rowlake.iceberg.manifest_rewrite import Clustering
    from rowlake.model.handle import TableHandle
    from rowlake.storage.files import Storage


@dataclass(frozen=True)
class ManifestsReplaced:
    """How it ended; `snapshot_id` is None where nothing was to do."""

    handle: TableHandle
    rewritten: RewrittenManifests
    snapshot_id: int | None = None
    retries: int = 0


@dataclass
class ManifestCommit:
    """One rewriting of manifests on its way into a branch."""

    clustering: Clustering
    storage: Storage
    branch: str = "main"
    operation: str = "rewrite_manifests"
    written: list[str] = field(default_factory=list)
    _done: RewrittenManifests | None = field(default=None, init=False)

    def plan(self, handle: TableHandle) -> RewrittenManifests:
        """Return what the commit would replace at this head; nothing is written."""
        return self._rewritten(handle, self._listed(handle), 0, dry_run=True)

    def run(self, handle: TableHandle) -> ManifestsReplaced:
        """Rewrite and commit; a lost race is tried again on what the winner left."""
        token = handle.format.new_token(handle)
        loop = CommitLoop(
            lambda newest, attempt: self._attempt(newest, token, attempt), self.branch
        )
        try:
            outcome = loop.run(handle)
        except BaseException as error:
            if not loop.may_have_landed(error):
                self.storage.delete(self.written)
            raise
        if isinstance(outcome, Unknown):
            raise CommitStateUnknownError(handle.name, token, outcome.cause)
        if not isinstance(outcome, Landed):
            self.storage.delete(self.written)
            gave_up = not isinstance(outcome, Refused)
            raise CommitConflictError(self.operation, handle.name, outcome.cause, gave_up=gave_up)
        if self._done is None:
            raise InternalError(f"{self.operation} of {handle.name} landed without an attempt.")
        made = token if self._done.replaced.num_rows else None
        return ManifestsReplaced(outcome.handle, self._done, made, loop.retries)

    def _listed(self, handle: TableHandle) -> pa.Table:
        if self.branch not in handle.refs:
            return MANIFESTS.empty_table()
        snapshot = handle.view(ref=self.branch).snapshot
        if snapshot is None or snapshot.manifest_list is None:
            return MANIFESTS.empty_table()
        return read_manifest_list(snapshot.manifest_list, self.storage)

    def _rewritten(
        self, handle: TableHandle, listed: pa.Table, snapshot_id: int, *, dry_run: bool = False
    ) -> RewrittenManifests:
        target = new_manifest_set(
            iceberg_handle(handle, self.operation), handle.view(), snapshot_id, self.storage
        )
        self.written = target.written
        return rewrite_manifests(target, listed, self.clustering, dry_run=dry_run)

    def _attempt(self, handle: TableHandle, token: int, attempt: int) -> Attempt | None:
        """Produce the snapshot for one head; manifests that still fit are used again."""
        listed = self._listed(handle)
        done = self._done
        if done is None or not done.fits(listed):
            self.storage.delete(self.written)
            done = self._done = self._rewritten(handle, listed, token)
            self.written = list(done.written)
        if not done.replaced.num_rows:
            return None
        kept = done.kept(listed)
        manifests = pa.concat_tables([done.added, kept])
        change = Change(
            Operation.REPLACE,
            branch=self.branch,
            properties=_summary(done, kept.num_rows) | noted(self.operation),
        )
        produced = produce_listing(
            iceberg_handle(handle, self.operation),
            change,
            token,
            manifests,
            self.storage,
            attempt=attempt,
        )
        self.written += produced.written
        return Attempt(produced.payload, produced.written)


def _summary(rewritten: RewrittenManifests, kept: int) -> dict[str, str]:
    return {
        "manifests-created": str(rewritten.added.num_rows),
        "manifests-kept": str(kept),
        "manifests-replaced": str(rewritten.replaced.num_rows),
        "entries-processed": str(rewritten.entries),
    }
