"""Batches of streams, and the marks by which a table knows which of them it holds.

A batch lands in one commit together with its mark: app id, batch id and run id in the snapshot's
summary, and the same with the snapshot in a table property (`rowlake.stream.<app id>`), which
outlives the snapshot. Batch ids of an app grow, so the last one that landed says it all.

**Which mark counts.** The newest one in the history of the branch's head:

- a snapshot that the table keeps counts where it is an ancestor of the head, or the head itself.
  So a batch is not recognised after a rollback to before it, on a branch that never had it, or
  while it is only on another branch; it is after compactions, fast-forwards and cherry-picks;
- a snapshot that expired counts where the property of this branch names it and the branch's kept
  history breaks off above it. Expiry by rowlake drops marks of snapshots that the branch had lost
  before, so what is left was in its history;
- without a property for the app nothing counts: unsetting it makes the table forget the app.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rowlake.errors import CorruptTableError, InvalidStatementError
from rowlake.model.handle import MAIN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from rowlake.model.handle import TableHandle
    from rowlake.model.view import SnapshotInfo

APP_ID, BATCH_ID, RUN_ID = "rowlake.app-id", "rowlake.batch-id", "rowlake.run-id"
_PROPERTY = "rowlake.stream"
# Marks kept in a property: the last one, and those that a rollback may bring back.
_KEPT = 8
_MOST_CHARACTERS = 200


@dataclass(frozen=True)
class AppBatch:
    """A batch of an app; batch ids of one app grow.

    `run_id` names one run of a query. A run that finds a batch of another run which was not there
    when it began (`began_after`) is refused, since two queries must not share an app id. Without
    a run id the batch is a call of its own, and what has landed already is skipped.
    """

    app_id: str
    batch_id: int
    run_id: str = ""
    began_after: int = -1

    def __post_init__(self) -> None:
        """Refuse what no mark can hold."""
        if not isinstance(self.app_id, str) or not 0 < len(self.app_id) <= _MOST_CHARACTERS:
            raise InvalidStatementError(
                f"app_id is a text of 1 to {_MOST_CHARACTERS} characters, not {self.app_id!r:.80}."
            )
        if isinstance(self.batch_id, bool) or not isinstance(self.batch_id, int):
            raise InvalidStatementError(f"A batch id is a whole number, not {self.batch_id!r:.80}.")
        if self.batch_id < 0:
            raise InvalidStatementError(f"A batch id is 0 or more, not {self.batch_id}.")

    @property
    def summary(self) -> dict[str, str]:
        """What the snapshot's summary says of it."""
        run = {RUN_ID: self.run_id} if self.run_id else {}
        return {APP_ID: self.app_id, BATCH_ID: str(self.batch_id), **run}


@dataclass(frozen=True)
class LandedBatch:
    """The mark of a batch that landed, and the snapshot that holds its rows."""

    batch_id: int
    snapshot_id: int
    sequence_number: int
    timestamp_ms: int
    run_id: str = ""

    @property
    def age(self) -> tuple[int, int]:
        """What orders snapshots; version 1 of Iceberg has no sequence numbers."""
        return self.sequence_number, self.timestamp_ms


def batch_of(summary: Mapping[str, str]) -> AppBatch | None:
    """Return the batch that a snapshot's summary names, without its run."""
    app_id, text = summary.get(APP_ID), summary.get(BATCH_ID, "")
    if not app_id or len(app_id) > _MOST_CHARACTERS or not text.isdecimal():
        return None
    return AppBatch(app_id, int(text))


def stream_property(app_id: str, branch: str = MAIN) -> str:
    """Return the table property that holds the marks of an app on a branch."""
    place = "" if branch == MAIN else "@" + quote(branch, safe="").replace(".", "%2E")
    return f"{_PROPERTY}{place}.{app_id}"


def last_landed(handle: TableHandle, branch: str, app_id: str) -> LandedBatch | None:
    """Return the newest batch of an app in the history of a branch."""
    if not _has_marks(handle.properties, app_id):
        return None
    oldest = None
    for snapshot in handle.ancestors(handle.head_of(branch)):
        mark = _mark_of(snapshot, app_id)
        if mark is not None:
            return mark
        oldest = snapshot
    if oldest is None or oldest.parent_id is None:
        return None
    age = (oldest.sequence_number, oldest.timestamp_ms)
    for mark in _marks(handle, stream_property(app_id, branch)):
        if handle.snapshot(mark.snapshot_id) is None and mark.age <= age:
            return mark
    return None


def with_mark(
    handle: TableHandle, branch: str, batch: AppBatch, landed: LandedBatch
) -> dict[str, str]:
    """Return the property to set with the commit of a batch: its mark before those that count."""
    name = stream_property(batch.app_id, branch)
    before = last_landed(handle, branch, batch.app_id)
    older = [
        mark
        for mark in _marks(handle, name)
        if before is not None and mark.age <= before.age and mark != before
    ]
    kept = [landed, *([before] if before else []), *older][:_KEPT]
    return {name: _text(batch.app_id, branch, kept)}


def marks_after_expiry(handle: TableHandle, gone: Collection[int]) -> dict[str, str | None]:
    """Return the properties that change when snapshots expire; None where one goes.

    What goes are marks of snapshots that are not in their branch's history: once the snapshots are
    gone, nothing else could tell them from those that are.
    """
    found: dict[str, str | None] = {}
    for name, text in handle.properties.items():
        if not name.startswith(_PROPERTY):
            continue
        held = _parsed(handle, name, text)
        history = {one.snapshot_id for one in handle.ancestors(handle.head_of(held.branch))}
        left = [
            mark
            for mark in held.marks
            if mark.snapshot_id not in gone or mark.snapshot_id in history
        ]
        if len(left) < len(held.marks):
            found[name] = _text(held.app_id, held.branch, left) if left else None
    return found


@dataclass(frozen=True)
class _Held:
    app_id: str
    branch: str
    marks: tuple[LandedBatch, ...]


def _has_marks(properties: Mapping[str, str], app_id: str) -> bool:
    end = f".{app_id}"
    return any(name.startswith(_PROPERTY) and name.endswith(end) for name in properties)


def _mark_of(snapshot: SnapshotInfo, app_id: str) -> LandedBatch | None:
    batch = batch_of(snapshot.summary) if snapshot.summary.get(APP_ID) == app_id else None
    if batch is None:
        return None
    return LandedBatch(
        batch.batch_id,
        snapshot.snapshot_id,
        snapshot.sequence_number,
        snapshot.timestamp_ms,
        snapshot.summary.get(RUN_ID, ""),
    )


def _marks(handle: TableHandle, name: str) -> Iterator[LandedBatch]:
    text = handle.properties.get(name)
    if text is not None:
        yield from _parsed(handle, name, text).marks


def _text(app_id: str, branch: str, marks: list[LandedBatch]) -> str:
    batches = [
        {
            "batch-id": mark.batch_id,
            "snapshot-id": mark.snapshot_id,
            "sequence-number": mark.sequence_number,
            "timestamp-ms": mark.timestamp_ms,
            **({"run-id": mark.run_id} if mark.run_id else {}),
        }
        for mark in marks
    ]
    held = {"app-id": app_id, "branch": branch, "batches": batches}
    return json.dumps(held, separators=(",", ":"))


def _parsed(handle: TableHandle, name: str, text: str) -> _Held:
    try:
        held: dict[str, Any] = json.loads(text)
        marks = tuple(_landed(one) for one in held["batches"])
        return _Held(str(held["app-id"]), str(held["branch"]), marks)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise CorruptTableError(
            handle.location,
            f"table property {name} does not hold the batches of a stream: {text[:80]!r}",
            advice=f"Unset {name[:80]}: the table then forgets which batches of that app it holds.",
        ) from None


def _landed(one: Mapping[str, Any]) -> LandedBatch:
    return LandedBatch(
        int(one["batch-id"]),
        int(one["snapshot-id"]),
        int(one["sequence-number"]),
        int(one["timestamp-ms"]),
        str(one.get("run-id", "")),
    )
