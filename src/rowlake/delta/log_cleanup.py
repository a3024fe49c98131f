"""Clean-up of a log: files that no version in retention needs (PROTOCOL.md, "Metadata Cleanup").

What is older than `delta.logRetentionDuration` goes, cut at a checkpoint: it, its own commit and
all after it stay. Sidecars go when no checkpoint that is left names them. Nothing goes where
`delta.enableExpiredLogCleanup` is false, or where the table protects its checkpoints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.delta.checkpoints import read_other_actions, sidecars_of
from rowlake.delta.durations import DAY_MS, duration_ms
from rowlake.delta.log_files import (
    LOG_FOLDER,
    SIDECAR_FOLDER,
    Checkpoint,
    list_log,
    parse_name,
)
from rowlake.delta.times import CommitTimes
from rowlake.errors import InvalidStatementError
from rowlake.storage.locations import join

if TYPE_CHECKING:
    from rowlake.delta.log_files import LogFiles
    from rowlake.delta.state import LogState

RETENTION, ENABLED = "delta.logRetentionDuration", "delta.enableExpiredLogCleanup"
PROTECTION_FEATURE = "checkpointProtection"
PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"


def clean_up(state: LogState, now_ms: int) -> list[str]:
    """Delete the expired files of a table's log; return those that were deleted."""
    if state.metadata.configuration.get(ENABLED, "true").lower() != "true":
        return []
    log = list_log(state.table, state.storage)
    cut = cut_of(log, state, now_ms)
    if cut is None:
        return []
    expired = _expired(state, cut)
    left = set(state.storage.delete(expired))
    # Sidecars after the checkpoints that name them, so that a crash leaves none without.
    stray = _stray_sidecars(state, now_ms)
    left |= set(state.storage.delete(stray))
    return [one for one in (*expired, *stray) if one not in left]


def cut_of(log: LogFiles, state: LogState, now_ms: int) -> int | None:
    """Return the checkpoint at which the log is cut, None where nothing before it has expired."""
    properties = state.metadata.configuration
    kept_ms = duration_ms(properties, RETENTION, "interval 30 days")
    oldest_ms = (now_ms - kept_ms) // DAY_MS * DAY_MS  # midnight
    if not all(file.modified_ms for file in log.commits.values()):
        return None  # the store does not tell how old a commit is
    times = CommitTimes(log, state.metadata, state.table, state.storage)
    try:
        commit = times.version_as_of(oldest_ms, state.table)
    except InvalidStatementError:  # none is as old
        return None
    cut = max((one for one in log.checkpoints if one <= commit), default=None)
    if cut is None or not any(version < cut for version in (*log.commits, *log.checkpoints)):
        return None
    return cut if _is_allowed(cut, state) else None


def _is_allowed(cut: int, state: LogState) -> bool:
    """Return whether a table lets a log be cut: protected versions must all go at once.

    (RFC "checkpointProtection": before that version, features may be in use that are no longer
    listed.)
    """
    if PROTECTION_FEATURE not in state.protocol.writer_features:
        return True
    before = state.metadata.configuration.get(PROTECTED_BEFORE, "0")
    return before.isdecimal() and cut >= int(before)


def _expired(state: LogState, cut: int) -> list[str]:
    """Return the files of versions before a checkpoint, and compactions that begin by then."""
    found = []
    for file in state.storage.children(join(state.table, LOG_FOLDER)):
        match = parse_name(file.location)
        if match is None:
            continue
        version = int(match["version"])
        if version < cut or (version == cut and match["last"]):
            found.append((version, file.location))
    # Oldest first: what a crash leaves is a log without holes.
    return [location for _, location in sorted(found)]


def _stray_sidecars(state: LogState, now_ms: int) -> list[str]:
    """Return the sidecars that no checkpoint names, and that no writer may be about to name."""
    files = state.storage.children(join(state.table, LOG_FOLDER, SIDECAR_FOLDER))
    old_ms = (now_ms - DAY_MS) // DAY_MS * DAY_MS
    old = [one.location for one in files if one.modified_ms < old_ms]
    if not old:
        return []
    named: set[str] = set()
    for file in state.storage.children(join(state.table, LOG_FOLDER)):
        match = parse_name(file.location)
        if match and (match["uuid"] or match["classic"]):
            checkpoint = Checkpoint(int(match["version"]), (file,))
            other = read_other_actions(checkpoint, state.table, state.storage)
            named |= set(sidecars_of(other, state.table))
    return [one for one in old if one not in named]
