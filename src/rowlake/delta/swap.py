"""Put a version into a log: all or nothing, by put-if-absent of its commit file."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from rowlake.delta.after_commit import after_commit
from rowlake.delta.commit_file import UncertainCommitError, commit_location, write_commit
from rowlake.model.outcome import Conflict, Landed, Unknown
from rowlake.storage.files import FileInfo

if TYPE_CHECKING:
    from rowlake.delta.handle import DeltaHandle
    from rowlake.delta.new_version import NewVersion
    from rowlake.model.outcome import Outcome


def swap(handle: DeltaHandle, payload: NewVersion) -> Outcome:
    """Write a version; a conflict where another writer has taken its number, or the table's place.

    Put-if-absent would put it above a hole in the log of a younger table. Raises StorageError
    where storage refused: nothing was written then.
    """
    if not _has_version_before(handle, payload.version):
        return Conflict(f"version {payload.version - 1} of the table is gone")
    try:
        is_ours = write_commit(handle.folder, payload.version, payload.actions, handle.storage)
    except UncertainCommitError as error:
        return Unknown(str(error))
    if not is_ours:
        return Conflict(f"another writer committed version {payload.version} first")
    landed = _landed(handle, payload.version)
    after_commit(landed.state, int(time.time() * 1000))
    return Landed(landed)


def _has_version_before(handle: DeltaHandle, version: int) -> bool:
    before = handle.log.commits.get(version - 1)
    return before is None or handle.storage.exists(before.location)


def _landed(handle: DeltaHandle, version: int) -> DeltaHandle:
    """Return the table at the version that was written, which others may have passed by now."""
    location = commit_location(handle.folder, version)
    filesystem, path = handle.storage.resolve(location)
    found = filesystem.get_file_info(path)
    modified = found.mtime_ns
    file = FileInfo(location, found.size or 0, 0 if modified is None else modified // 10**6)
    log = replace(handle.log, commits={**handle.log.commits, version: file})
    return replace(handle, log=log, pending=None)
