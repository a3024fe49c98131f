"""What a writer does after a commit: checksum, manifests, checkpoint, clean-up of the log.

None of it changes the table, so nothing of it fails the commit: what goes wrong is logged, and the
next writer makes up for it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rowlake.delta import symlink_manifests
from rowlake.delta.checkpoint_writer import write_checkpoint
from rowlake.delta.checksum_file import write_checksum
from rowlake.delta.log_cleanup import clean_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.delta.state import LogState

INTERVAL, DEFAULT_INTERVAL = "delta.checkpointInterval", 10

logger = logging.getLogger("rowlake")


def after_commit(state: LogState, now_ms: int) -> None:
    """Do what is due after the commit of a state's version landed; raise nothing."""
    _try("checksum", write_checksum, state, now_ms)
    if symlink_manifests.is_enabled(state):
        _try("symlink manifests", _write_manifests, state, now_ms)
    if is_checkpoint_due(state):
        done = _try("checkpoint", write_checkpoint, state, now_ms)
        if done:
            _try("clean-up of the log", clean_up, state, now_ms)


def _write_manifests(state: LogState, _now_ms: int) -> None:
    symlink_manifests.write_manifests(state)


def is_checkpoint_due(state: LogState) -> bool:
    """Return whether a version is one of every few that get a checkpoint."""
    text = state.metadata.configuration.get(INTERVAL, str(DEFAULT_INTERVAL))
    interval = int(text) if text.isdecimal() and int(text) > 0 else DEFAULT_INTERVAL
    return state.version > 0 and state.version % interval == 0


def _try(what: str, act: Callable[[LogState, int], object], state: LogState, now_ms: int) -> bool:
    try:
        act(state, now_ms)
    except Exception:  # the commit is in the table, whatever comes after it
        logger.warning(
            "%s: the %s of version %d failed; the commit itself is in the table.",
            state.table,
            what,
            state.version,
            exc_info=True,
        )
        return False
    return True
