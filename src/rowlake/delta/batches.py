"""Batches of streams by Delta's `txn` actions (PROTOCOL.md, "Transaction Identifiers").

A `txn` says which batch of an app was the last to land. Which version holds it, and which run of a
query wrote it, is said by the commit itself, as long as the log has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.model.app_batch import RUN_ID, LandedBatch

if TYPE_CHECKING:
    from rowlake.delta.commits import Commit
    from rowlake.delta.handle import DeltaHandle


def last_landed(handle: DeltaHandle, app_id: str) -> LandedBatch | None:
    """Return the newest batch of an app; None where the table holds none."""
    batch_id = None if handle.is_staged else handle.state.actions.transactions.get(app_id)
    if batch_id is None:
        return None
    commit = _commit_of(handle, app_id)
    version = handle.log.oldest if commit is None else commit.version
    run_id = "" if commit is None else _run_of(commit)
    return LandedBatch(batch_id, version, version, handle.times.of(version), run_id)


def _commit_of(handle: DeltaHandle, app_id: str) -> Commit | None:
    """Return the newest commit that holds a batch of an app, None where the log has lost it."""
    for version in sorted(handle.log.commits, reverse=True):
        commit = handle.commit_at(version)
        if app_id in commit.other.transactions:
            return commit
    return None


def _run_of(commit: Commit) -> str:
    tags = (commit.other.commit_info or {}).get("tags")
    return str(tags.get(RUN_ID, "")) if isinstance(tags, dict) else ""
