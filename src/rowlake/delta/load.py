"""Delta tables by their path."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rowlake.delta.handle import DeltaHandle
from rowlake.delta.log_files import list_log
from rowlake.errors import CorruptTableError, TableNotFoundError
from rowlake.storage.files import Storage
from rowlake.storage.filesystems import io_properties
from rowlake.storage.locations import folder_location, split

if TYPE_CHECKING:
    from rowlake.delta.log_files import LogFiles
    from rowlake.model.names import Identifier

logger = logging.getLogger("rowlake")
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
    return _readable(DeltaHandle(identifier, catalog, folder, log, properties))


def _readable(handle: DeltaHandle) -> DeltaHandle:
    """Return a table that is read without checkpoints which were cut off.

    That is where the log goes on without them: an older checkpoint, or the first version, and every
    commit since.
    """
    while (log := _log_to_try(handle)) is not None:
        handle = replace(handle, log=log)
    return handle


def _log_to_try(handle: DeltaHandle) -> LogFiles | None:
    """Return None where the table can be read, else its log without the damaged checkpoint."""
    try:
        _ = handle.state.metadata
    except CorruptTableError as error:
        log = _without_checkpoint(handle.log, error.location)
        if log is None:
            raise
        logger.warning("%s; %s is read without it", error.cause, handle.name)
        return log
    return None


def _without_checkpoint(log: LogFiles, location: str) -> LogFiles | None:
    """Return a log without its newest checkpoint, if a location is of that and it can be spared."""
    newest = max(log.checkpoints, default=None)
    if newest is None or all(one.location != location for one in log.checkpoints[newest].files):
        return None
    kept = {at: one for at, one in log.checkpoints.items() if at != newest}
    first = max(kept, default=-1) + 1
    is_whole = all(version in log.commits for version in range(first, log.newest + 1))
    return replace(log, checkpoints=kept) if is_whole else None


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
    return _readable(replace(handle, log=_after(handle.log, log), pending=None))


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
