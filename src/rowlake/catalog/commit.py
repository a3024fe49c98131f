"""Commits: landed, conflict or unknown, and never a guess.

A `RowlakeError` out of here means that the commit did not land and cannot by trying again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyiceberg.table.update import AddSnapshotUpdate

from rowlake.catalog.backend import backend_of
from rowlake.catalog.failures import meaning
from rowlake.catalog.fate import Fate, fate_of, status_of
from rowlake.catalog.transaction import HeldCommit, holding
from rowlake.errors import InternalError, RowlakeError, StorageError
from rowlake.iceberg.metadata_checks import validate_updates
from rowlake.model.outcome import Conflict, Landed, Outcome, Unknown
from rowlake.secrets import cause_without_secrets, without_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.table.update import TableRequirement, TableUpdate

    from rowlake.catalog.handle import IcebergHandle

# Seconds to wait before each check of a table whose commit has an unknown outcome.
LOOKS = (0.0, 0.5, 2.0)


def commit_updates(
    handle: IcebergHandle,
    updates: Sequence[TableUpdate],
    requirements: Sequence[TableRequirement],
    *,
    origin: object = None,
) -> Outcome:
    """Apply updates to a table where the requirements hold, all or nothing.

    A staged table is created by it. Where the answer of the catalog is lost, the table is
    looked at: a snapshot of ours in it proves that the commit landed. In a transaction the commit
    waits, and `origin` with it: what can make it again.
    """
    validate_updates(updates, handle.metadata.properties)
    held = holding(handle)
    try:
        if held is not None:
            commit = HeldCommit(tuple(updates), tuple(requirements), origin)
            return Landed(held.hold(handle, commit))
        return Landed(backend_of(handle.catalog).commit(handle, updates, requirements))
    except Exception as error:  # noqa: BLE001 - whatever it is, it says what became of the commit
        fate = fate_of(error)
        if fate is Fate.CONFLICT:
            return Conflict(text_of(error, handle))
        if fate is Fate.FAILED:
            raise failure(handle, error) from cause_of(error, handle)
        return look(handle, updates, text_of(error, handle))


def snapshots_in(updates: Sequence[TableUpdate]) -> set[int]:
    """Return the snapshots that updates add."""
    return {
        update.snapshot.snapshot_id for update in updates if isinstance(update, AddSnapshotUpdate)
    }


def look(handle: IcebergHandle, updates: Sequence[TableUpdate], cause: str) -> Outcome:
    """Look whether a commit of unknown outcome landed; unknown where it left no trace."""
    ours = snapshots_in(updates)
    if not ours:
        return Unknown(cause)
    for seconds in LOOKS:
        time.sleep(seconds)
        seen = _seen(handle)
        if seen is not None and ours <= {one.snapshot_id for one in seen.metadata.snapshots}:
            return Landed(seen)
    return Unknown(cause)


def _seen(handle: IcebergHandle) -> IcebergHandle | None:
    # Whatever goes wrong while looking, the outcome is as unknown as it was.
    try:
        seen = backend_of(handle.catalog).load(handle.identifier, handle)
    except Exception:  # noqa: BLE001
        return None
    return seen if seen.metadata.table_uuid == handle.metadata.table_uuid else None


def failure(handle: IcebergHandle, error: Exception) -> RowlakeError:
    """Return what an error means that trying again does not mend."""
    if isinstance(error, RowlakeError):
        return error
    meant = meaning(handle.catalog, f"commit to {handle.name}", handle.identifier, error)
    text = without_secrets(repr(error), handle.catalog.properties)
    return meant or InternalError(f"Commit to {handle.name} failed: {text}")


def cause_of(error: Exception, handle: IcebergHandle) -> BaseException | None:
    """Return an error to raise `from`; None where it would show a secret of the catalog."""
    return cause_without_secrets(error, {**handle.catalog.properties, **handle.io_properties})


def text_of(error: Exception, handle: IcebergHandle) -> str:
    """Return the cause in an error, with the status that the catalog answered."""
    if isinstance(error, StorageError):
        return str(error)
    status = status_of(error)
    told = without_secrets(str(error), handle.catalog.properties)
    text = " ".join(told.split()) or type(error).__name__
    return f"the catalog answered {status} ({text})" if status else text
