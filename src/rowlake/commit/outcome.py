"""Commit outcomes -> results and errors: the one place where an outcome becomes an exception.

Files are removed after a failure only where it is proven that no snapshot refers to them: after a
conflict, never after an unknown outcome.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rowlake.catalog.many import AllLanded
from rowlake.commit.data import Commit
from rowlake.commit.loop import Recognised
from rowlake.commit.transaction import TransactionCommit, discard
from rowlake.errors import CommitConflictError, CommitStateUnknownError
from rowlake.model.following import has_landed
from rowlake.model.key_index import with_indexes
from rowlake.model.outcome import Conflict, Landed, Unknown
from rowlake.model.provenance import noted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlake.catalog.transaction import HoldingCatalog
    from rowlake.commit.data import Committed, Rebasing
    from rowlake.model.change import Change
    from rowlake.model.format import Payload
    from rowlake.model.handle import TableHandle
    from rowlake.storage.files import Storage


@dataclass
class Phases:
    """Seconds per phase of an operation."""

    seconds: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time what runs inside."""
        before = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - before
            self.seconds[name] = self.seconds.get(name, 0.0) + spent

    @property
    def total(self) -> float:
        """Seconds since the operation began."""
        return time.perf_counter() - self.started


def commit_or_raise(
    handle: TableHandle,
    change: Change,
    storage: Storage,
    operation: str,
    *,
    keep_files: bool = False,
    first: Callable[[TableHandle], Payload | None] | None = None,
    rebase: Rebasing | None = None,
) -> tuple[TableHandle, Committed]:
    """Commit a change; on a conflict remove the files that it wrote, and raise.

    The snapshot's summary notes the operation, for `history`.

    `keep_files` is for changes whose files other snapshots refer to already; `rebase` brings the
    change onto a newer head in a way of its own. A batch of a stream that has landed before is
    skipped: its files are removed, and `Committed.skipped` is True.
    """
    change = replace(change, properties={**noted(operation), **change.properties})
    written = [] if keep_files else _locations(change)
    change = replace(change, verb=change.verb or operation)
    commit = Commit(change, storage, first, operation, written, rebase=rebase)
    try:
        committed = commit.run(handle)
    except BaseException as error:
        if not commit.may_have_landed(error):
            storage.delete(written)
        raise
    outcome = committed.outcome
    if isinstance(outcome, Landed):
        has_landed(outcome.handle)
        return outcome.handle, committed
    if isinstance(outcome, Unknown):
        raise CommitStateUnknownError(handle.name, committed.snapshot_id, outcome.cause)
    storage.delete(written)
    if isinstance(outcome, Recognised):
        return outcome.handle, committed
    if isinstance(outcome, Conflict):
        lost = f"{committed.retries + 1} attempts lost against other writers ({outcome.cause})"
        raise CommitConflictError(operation, handle.name, lost, gave_up=True)
    raise CommitConflictError(
        operation,
        handle.name,
        outcome.cause,
        snapshot_id=outcome.snapshot_id,
        files=outcome.files,
        retryable=outcome.retryable,
        same_rows=outcome.same_rows,
    )


def commit_all_or_raise(catalog: HoldingCatalog) -> None:
    """Commit all that waits in a transaction; on a conflict remove what it wrote, and raise."""
    commit = TransactionCommit(catalog)
    try:
        outcome = commit.run()
    except BaseException as error:
        if not commit.may_have_landed(error):
            discard(catalog)
        raise
    if isinstance(outcome, AllLanded):
        for landed in outcome.handles:
            has_landed(landed)
        return
    names = ", ".join(table.base.name for table in catalog.changed)
    if isinstance(outcome, Unknown):
        first = catalog.changed[0]
        made = first.snapshot_ids
        cause = f"{outcome.cause} (transaction over {names})"
        raise CommitStateUnknownError(first.base.name, made[-1] if made else None, cause)
    discard(catalog)
    if isinstance(outcome, Conflict):
        lost = f"{commit.retries + 1} attempts lost against other writers ({outcome.cause})"
        raise CommitConflictError("the transaction", names, lost, gave_up=True)
    raise CommitConflictError(
        f"the {outcome.operation} of a transaction",
        outcome.table,
        outcome.refused.cause,
        snapshot_id=outcome.refused.snapshot_id,
        files=outcome.refused.files,
        same_rows=outcome.refused.same_rows,
    )


def _locations(change: Change) -> list[str]:
    data = with_indexes(change.added_data["location"].to_pylist())
    others = (change.added_deletes, change.images)
    return data + [place for files in others for place in files["location"].to_pylist()]
