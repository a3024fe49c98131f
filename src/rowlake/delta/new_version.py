"""The next version of a table as it will be written: actions, with commitInfo first.

Everything that depends on the number of the version or on the head is settled here, so that a lost
race makes another one: in-commit timestamps, row ids, who committed when.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rowlake.delta.actions import Actions
from rowlake.delta.commit_info import ROW_TRACKING_PRESERVED, CommitInfo, next_timestamp
from rowlake.delta.features import IN_COMMIT_TIMES
from rowlake.delta.row_tracking import ENABLE as ENABLE_ROW_TRACKING
from rowlake.delta.state import PendingState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.delta.handle import DeltaHandle
    from rowlake.delta.operations import Told

_TOKEN_BITS = 62
FILE_KINDS = ("add", "remove", "cdc")


@dataclass(frozen=True)
class NewVersion:
    """What `swap` writes; `keeps_files`: live files stay, but for those it names."""

    version: int
    actions: tuple[Mapping[str, Any], ...]
    keeps_files: bool = True

    @property
    def definition(self) -> tuple[Mapping[str, Any], ...]:
        """The actions without commitInfo, to be part of another commit."""
        return tuple(one for one in self.actions if "commitInfo" not in one)


@dataclass(frozen=True)
class Saying:
    """What a commit says of itself beyond what it does."""

    told: Told
    token: str
    is_blind_append: bool = False
    user_metadata: str | None = None
    tags: Mapping[str, str] | None = None


def new_version(
    handle: DeltaHandle,
    actions: Sequence[Mapping[str, Any]],
    saying: Saying,
    *,
    keeps_files: bool = True,
) -> NewVersion:
    """Return the version after the head with these actions."""
    after = state_after(handle, actions, keeps_files=keeps_files)
    now = int(time.time() * 1000)
    has_times = after.metadata.is_set(IN_COMMIT_TIMES)
    tags = dict(saying.tags or {})
    if after.metadata.is_set(ENABLE_ROW_TRACKING):
        tags[ROW_TRACKING_PRESERVED] = "true"
    info = CommitInfo(
        operation=saying.told.operation,
        token=saying.token,
        timestamp_ms=now,
        parameters=saying.told.parameters,
        metrics=saying.told.metrics,
        read_version=None if handle.is_staged else handle.snapshot_version,
        is_blind_append=saying.is_blind_append,
        in_commit_timestamp=next_timestamp(now, _last_time(handle)) if has_times else None,
        user_metadata=saying.user_metadata,
        tags=tags or None,
    )
    return NewVersion(handle.snapshot_version + 1, (info.action(), *actions), keeps_files)


def _last_time(handle: DeltaHandle) -> int | None:
    return None if handle.is_staged else handle.times.of(handle.snapshot_version)


def state_after(
    handle: DeltaHandle, actions: Sequence[Mapping[str, Any]], *, keeps_files: bool = True
) -> PendingState:
    """Return the table's state with another definition, as some actions say."""
    changed = Actions()
    if handle.pending is not None:
        changed = handle.pending.changed
    newer = Actions()
    for one in actions:
        for kind, action in one.items():
            if kind not in FILE_KINDS:
                newer.add(kind, action, handle.location)
    base = handle.state.segment
    return PendingState(handle.folder, base, handle.storage, newer.after(changed), keeps_files)


def altered(handle: DeltaHandle, payload: NewVersion) -> DeltaHandle:
    """Return the table as it will be once a version has landed."""
    pending = state_after(handle, payload.actions, keeps_files=payload.keeps_files)
    return replace(handle, pending=pending)


def new_token() -> int:
    """Return a number that no other commit has."""
    return uuid.uuid4().int >> (128 - _TOKEN_BITS)


def token_text(token: int) -> str:
    """Return a token as commits have it: in the form of a UUID, as other writers' are."""
    return str(uuid.UUID(int=token))
