"""The keyword arguments that every write takes, typed: editors and type checkers know them."""

from __future__ import annotations

from collections.abc import Callable, Mapping  # noqa: TC003 - annotations are looked at
from typing import Any, Literal, TypedDict


class WriteArguments(TypedDict, total=False):
    """What every write takes besides its own arguments; an argument beats a table property.

    - `branch`: the branch to write to (`main`);
    - `mode`: `auto` (decided per file), `copy-on-write` or `merge-on-read`;
    - `deletes`: how rows are deleted on read: `auto`, `position`, `equality` or `vector`;
    - `isolation`: `serializable` or `snapshot`;
    - `properties`: for the snapshot's summary;
    - `progress`: a bar on the terminal, none, or a callback;
    - `stage_only`: make a snapshot that no branch points to (write-audit-publish);
    - `app_batch`: the batch of a stream that this write is; it lands once.
    """

    branch: str
    mode: Literal["auto", "copy-on-write", "merge-on-read"] | None
    deletes: Literal["auto", "position", "equality", "vector"] | None
    isolation: Literal["serializable", "snapshot"] | None
    properties: Mapping[str, str]
    progress: bool | Callable[..., Any] | None
    stage_only: bool
    app_batch: Any


class RefArguments(TypedDict, total=False):
    """What branches and tags take besides their name: how long they keep snapshots."""

    max_ref_age_ms: int | None
    max_snapshot_age_ms: int | None
    min_snapshots_to_keep: int | None
    replace: bool
    if_not_exists: bool
