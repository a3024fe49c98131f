"""Tables that look after themselves: `optimize` after writes, where properties ask for it.

- `rowlake.auto-optimize.enabled` (false): whether to;
- `rowlake.auto-optimize.every-commits` (10): so many commits to main since the last compaction;
- `rowlake.auto-optimize.min-interval-seconds` (60): at most this often;
- `rowlake.auto-optimize.max-bytes` (1 GB): what one run may rewrite, as the writer waits for it.

It runs in the writer's process after the write has landed; after a transaction, once all of it has.
Whatever goes wrong is logged as a warning and never fails the write. Staged writes and writes to
other branches do not start it.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rowlake.engine.tally import untallied
from rowlake.errors import RowlakeError
from rowlake.model.properties import whole_number
from rowlake.model.result import Result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.view import SnapshotInfo

PREFIX = "rowlake.auto-optimize."
EVERY_COMMITS, MIN_INTERVAL_SECONDS, MAX_BYTES = 10, 60, 1_000_000_000
MAIN = "main"

logger = logging.getLogger("rowlake")
_lock = threading.Lock()
_busy: set[str] = set()
_looks: dict[str, _Look] = {}


@dataclass(frozen=True)
class _Look:
    """When this process last looked at a table, and at which snapshot."""

    at_ms: int
    snapshot_id: int | None


@dataclass(frozen=True)
class Policy:
    """What the properties say."""

    every_commits: int
    min_interval_seconds: int
    max_bytes: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Policy:
        """Return the policy of a table that has one."""
        return cls(
            whole_number(properties, f"{PREFIX}every-commits", EVERY_COMMITS, least=1),
            whole_number(properties, f"{PREFIX}min-interval-seconds", MIN_INTERVAL_SECONDS),
            whole_number(properties, f"{PREFIX}max-bytes", MAX_BYTES, least=1),
        )


class ChangedTable(Protocol):
    """A table that a transaction changed: as it was read, as it was left, and its new snapshots."""

    @property
    def base(self) -> TableHandle:
        """The table that the commits landed on."""

    @property
    def handle(self) -> TableHandle:
        """The table with the commits."""

    @property
    def snapshot_ids(self) -> Sequence[int]:
        """The snapshots that the commits added, in order."""


class LandedTransaction(Protocol):
    """A transaction whose commits have all landed."""

    @property
    def changed(self) -> Sequence[ChangedTable]:
        """The tables that it changed."""


@untallied()
def tidied(handle: TableHandle, engine: Engine, result: Result) -> TableHandle:
    """Return the table after a write, optimized where its policy says that it is time."""
    if not _is_asked_for(handle, result):
        return handle
    uuid = handle.uuid
    with _lock:
        if uuid in _busy:
            return handle
        _busy.add(uuid)
    try:
        return _optimized(handle, engine, uuid)
    except Exception as error:  # noqa: BLE001 - the write has landed, whatever happens here
        logger.warning("auto-optimize of %s failed; the write has landed: %s", handle.name, error)
        return handle
    finally:
        _busy.discard(uuid)


def tidy_after(transaction: LandedTransaction, engine: Engine) -> None:
    """Look after the tables of a transaction that has landed."""
    for held in transaction.changed:
        if not held.snapshot_ids or not _is_enabled(held.handle):
            continue
        try:
            newest = held.base.format.refresh(held.base)
        except RowlakeError as error:
            logger.warning("auto-optimize of %s failed: %s", held.base.name, error)
            continue
        tidied(newest, engine, Result("transaction", held.snapshot_ids[-1]))


def _is_enabled(handle: TableHandle) -> bool:
    enabled = str(handle.properties.get(f"{PREFIX}enabled", "false"))
    return enabled.strip().lower() == "true"


def _is_asked_for(handle: TableHandle, result: Result) -> bool:
    """Return whether a write went to the main branch of a table with a policy."""
    if not _is_enabled(handle) or handle.is_in_transaction:
        return False
    head = handle.refs.get(MAIN)
    return head is not None and head.snapshot_id == result.snapshot_id


def _optimized(handle: TableHandle, engine: Engine, uuid: str) -> TableHandle:
    policy = Policy.of(handle.properties)
    look = _looks.get(uuid)
    if not is_due(handle, policy, look):
        return handle
    # A write should not load all of maintenance where nothing is due.
    from rowlake.maintain.autopilot.optimize import optimize

    _looks[uuid] = _Look(_now_ms(), handle.current_snapshot_id)
    after, report = optimize(handle, engine, max_bytes=policy.max_bytes)
    _looks[uuid] = _Look(_now_ms(), after.current_snapshot_id)
    logger.info("auto-optimize: %s", report.summary())
    return after


def is_due(handle: TableHandle, policy: Policy, look: _Look | None) -> bool:
    """Return whether enough commits and time have passed since the last compaction or look.

    Compactions of other processes count by their snapshots.
    """
    now = _now_ms()
    wait_ms = policy.min_interval_seconds * 1000
    if look is not None and now - look.at_ms < wait_ms:
        return False
    count = 0
    for found in handle.ancestors(handle.current_snapshot_id):
        if look is not None and found.snapshot_id == look.snapshot_id:
            break
        if _is_of_metadata(found):
            continue
        if found.operation == "replace":
            return count >= policy.every_commits and now - found.timestamp_ms >= wait_ms
        count += 1
    return count >= policy.every_commits


def _is_of_metadata(found: SnapshotInfo) -> bool:
    """Return whether a commit touched no file; some formats log changes of metadata as commits."""
    counts = ("added-data-files", "deleted-data-files", "removed-files-size")
    return found.operation == "replace" and all(found.summary.get(one) == "0" for one in counts)


def _now_ms() -> int:
    return int(time.time() * 1000)
