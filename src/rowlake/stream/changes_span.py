"""Which commits a change feed covers.

Comes in: where it starts (exclusive) and ends (inclusive), as snapshots or times. Goes out: the
commits between the two, oldest first, on the one line of ancestors that leads to the end. What was
rolled back is not on it. The rows come in the schema of the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError

if TYPE_CHECKING:
    from rowlake.model.feed import Bounds
    from rowlake.model.format import LandedCommit
    from rowlake.model.handle import TableHandle
    from rowlake.model.view import SnapshotInfo, TableView


@dataclass(frozen=True)
class Span:
    """The commits of a feed that change rows.

    - `end`: the table at the end;
    - `first`: where no start was given, the oldest snapshot kept, whose rows are all inserts.
    """

    end: TableView
    commits: tuple[LandedCommit, ...] = ()
    first: SnapshotInfo | None = None

    def at(self, snapshot: SnapshotInfo | None) -> TableView:
        """Return the table at a snapshot, in the schema of the end."""
        return self.end.at(snapshot)


def span_of(handle: TableHandle, bounds: Bounds) -> Span:
    """Return the commits between two snapshots or times.

    Raises InvalidStatementError where a snapshot has expired, or the start is no ancestor of the
    end.
    """
    end = end_view(handle, bounds)
    if end.snapshot is None:
        if bounds.start is not None:
            raise _unknown(handle, bounds.start, "start")
        return Span(end)
    line = _line_of(handle, end.snapshot_id, bounds)
    start = _start_of(handle, bounds, line)
    first = line[-1] if start is None else None
    since = line[-1].snapshot_id if start is None else start
    travels = bounds.end is not None or bounds.end_ms is not None
    until = end.snapshot_id if travels else None
    commits = handle.format.commits_since(handle, bounds.branch, since, end=until)
    changing = tuple(commit for commit in commits or () if commit.changes_rows)
    return Span(end, changing, first)


def end_view(handle: TableHandle, bounds: Bounds) -> TableView:
    """Return the table at the end of a feed; its schema is that of the rows."""
    if bounds.end is not None and bounds.end_ms is not None:
        raise InvalidStatementError("Give one of end and end_as_of, not both.")
    head = handle.view(ref=bounds.branch)
    if bounds.end is not None:
        if handle.snapshot(bounds.end) is None:
            raise _unknown(handle, bounds.end, "end")
        return handle.view(snapshot_id=bounds.end)
    if bounds.end_ms is None:
        return head
    for snapshot in handle.ancestors(head.snapshot_id):
        if snapshot.timestamp_ms <= bounds.end_ms:
            return handle.view(snapshot_id=snapshot.snapshot_id)
    return head.at(None)


def _line_of(handle: TableHandle, end: int | None, bounds: Bounds) -> list[SnapshotInfo]:
    """Return the end and its ancestors, newest first, as far as the start."""
    line = []
    for snapshot in handle.ancestors(end):
        line.append(snapshot)
        is_before = bounds.start_ms is not None and snapshot.timestamp_ms <= bounds.start_ms
        if is_before or snapshot.snapshot_id == bounds.start:
            break
    return line


def _start_of(handle: TableHandle, bounds: Bounds, line: list[SnapshotInfo]) -> int | None:
    """Return the snapshot after which the feed starts; None for all of the line."""
    if bounds.start is not None and bounds.start_ms is not None:
        raise InvalidStatementError("Give one of start and start_as_of, not both.")
    if bounds.start is not None:
        _validate_start(handle, bounds.start, line)
        return bounds.start
    if bounds.start_ms is None:
        return None
    for snapshot in line:
        if snapshot.timestamp_ms <= bounds.start_ms:
            return snapshot.snapshot_id
    if line[-1].parent_id is not None:
        raise InvalidStatementError(
            f"Cannot read the changes of {handle.name} since {bounds.start_ms} ms: snapshots from "
            f"before {line[-1].snapshot_id} have expired. Start at snapshot "
            f"{line[-1].snapshot_id}, the oldest that is kept, or leave start out to begin with "
            "its rows."
        )
    return None


def _validate_start(handle: TableHandle, start: int, line: list[SnapshotInfo]) -> None:
    if any(snapshot.snapshot_id == start for snapshot in line):
        return
    if handle.snapshot(start) is None:
        raise _unknown(handle, start, "start", line[-1].snapshot_id)
    end, oldest = line[0].snapshot_id, line[-1].snapshot_id
    cause = f"snapshot {start} is not an ancestor of snapshot {end}"
    if line[-1].parent_id is not None:
        cause += ", as far as snapshots are kept"
    raise InvalidStatementError(
        f"Cannot read the changes of {handle.name}: {cause}. It is on another branch, or it was "
        f"rolled back. The oldest ancestor to start at is snapshot {oldest}."
    )


def _unknown(
    handle: TableHandle, snapshot_id: int, role: str, oldest: int | None = None
) -> InvalidStatementError:
    if oldest is None:
        kept = sorted(handle.snapshots, key=lambda each: each.timestamp_ms)
        oldest = kept[0].snapshot_id if kept else None
    advice = (
        "It has no snapshots."
        if oldest is None
        else f"The oldest snapshot available is {oldest}; start there, or leave start out to begin "
        "with all rows of it."
    )
    return InvalidStatementError(
        f"Cannot read the changes of {handle.name}: snapshot {snapshot_id} ({role}) is unknown or "
        f"has expired. {advice}"
    )
