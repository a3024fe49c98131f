"""Delta tables by their path."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rowlake.delta.handle import DeltaHandle
from rowlake.delta.log_files import list_log
from rowlake.errors import TableNotFoundError
from rowlake.storage.files import Storage
from rowlake.storage.filesystems import io_properties
from rowlake.storage.locations import folder_location, split

if TYPE_CHECKING:
    from rowlake.delta.log_files import LogFiles
    from rowlake.model.names import Identifier

# That are read on top of a checkpoint while a newer one is there.
MOST_COMMITS = 100


def load_path(catalog: Any, identifier: Identifier, path: str) -> DeltaHandle:
    """Return the table in a folder, as it is now; the catalog's properties open its files.

    Raises TableNotFoundError where there is no log.
    """
    folder = folder_of(path)
    properties = io_properties(catalog.properties)
    log = list_log(folder, Storage(properties))
    if log.is_empty:
        raise TableNotFoundError(f"delta.`{path}`", kind="Delta table")
    handle = DeltaHandle(identifier, catalog, folder, log, properties)
    _ = handle.state.metadata
    return handle


def folder_of(path: str) -> str:
    """Return the location of a table's folder; files of this machine have one spelling."""
    parts = split(path)
    return parts.path.rstrip("/") or "/" if parts.is_local else folder_location(path)


def refresh(handle: DeltaHandle) -> DeltaHandle:
    """Return the table as it is now; the same handle where there is no newer version.

    The version is read on top of what the handle has read: with its checkpoint, so that commits in
    between are known one by one, unless there are too many.
    """
    log = list_log(handle.folder, handle.storage)
    if log.is_empty:
        raise TableNotFoundError(handle.name)
    if log.newest == handle.snapshot_version:
        return handle
    newest = replace(handle, log=_after(handle.log, log), pending=None)
    _ = newest.state.metadata
    return newest


def _after(before: LogFiles, log: LogFiles) -> LogFiles:
    known = max(before.checkpoints, default=-1)
    can_go_on = all(one in log.commits for one in range(known + 1, log.newest + 1))
    if log.newest - known > MOST_COMMITS or not can_go_on:
        return log
    kept = {at: one for at, one in log.checkpoints.items() if at <= known}
    return replace(log, checkpoints=kept, compactions={}) if kept or known < 0 else log


def is_there(handle: DeltaHandle) -> bool:
    """Return whether there is a log where the table was."""
    return not list_log(handle.folder, handle.storage).is_empty
