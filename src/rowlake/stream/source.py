"""A table as `spark.readStream.format("rowlake")` reads it: commits as they land.

Comes in: options, as `query.relation` takes them, and

- `changes`: `true` for rows with the columns that describe changes, else rows that were added;
- `starting`: `earliest` (first the table as it is; the default), `latest`, or a snapshot id, after
  which the stream begins; `start-timestamp`: ms since 1970, after which it begins;
- `max-files-per-trigger`, `max-rows-per-trigger`: how much a batch has at most, but at least one
  file, or all files that a copy-on-write commit replaced.

Goes out: offsets, and tasks of what is between two. Rows come in the schema that the table had when
the query started. An update is a delete and an insert, the delete never in a later batch than the
insert; within a batch rows have no order. `_change_ordinal` is the snapshot's sequence number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError, shown
from rowlake.model.feed import CHANGE_FIELDS
from rowlake.model.handle import MAIN
from rowlake.model.predicate import TRUE
from rowlake.model.schema import Schema, field_id
from rowlake.model.task import ScanTask
from rowlake.query.relation import SLOTS, table_of_options
from rowlake.scan.kernel import scan_kernel
from rowlake.stream.changes import PlannedChanges, context_of, validate_names
from rowlake.stream.changes_kernel import final_changes
from rowlake.stream.changes_plan import ChangePlanner
from rowlake.stream.changes_settle import Settling
from rowlake.stream.changes_span import Span
from rowlake.stream.source_offset import ALL, NO_SNAPSHOT, Offset
from rowlake.stream.source_options import (
    EARLIEST,
    LATEST,
    MOST_FILES,
    MOST_ROWS,
    START_TIME,
    STARTING,
)
from rowlake.verbs.read import scan_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rowlake.model.format import LandedCommit
    from rowlake.model.handle import TableHandle
    from rowlake.model.view import SnapshotInfo, TableView
    from rowlake.stream.changes_task import ChangeGroup

_WHOLE_GROUPS = 1 << 62


def stream_of(defaults: Mapping[str, str], options: Mapping[str, str]) -> TableStream:
    """Return the stream that options name; `defaults` are the lake's own."""
    handle, given = table_of_options(defaults, options)
    branch = given.get("branch", MAIN)
    schema = handle.view(ref=branch).schema
    return TableStream(handle, branch, schema, given)


@dataclass
class TableStream:
    """The commits of one branch; `schema` is the one that rows come in."""

    handle: TableHandle
    branch: str
    rows: Schema
    options: Mapping[str, str]

    @property
    def has_changes(self) -> bool:
        """True where rows come with what happened to them."""
        return self.options.get("changes", "false").lower() == "true"

    @property
    def schema(self) -> pa.Schema:
        """The columns that come out, in the table's types."""
        return pa.schema([*self.rows.arrow, *(CHANGE_FIELDS if self.has_changes else ())])

    # --- offsets

    def initial(self) -> dict[str, Any]:
        """Return where a new query begins."""
        return self._first_offset.to_dict()

    @cached_property
    def _first_offset(self) -> Offset:
        head, table = self.handle.head_of(self.branch), self.handle.uuid
        starting = self.options.get(STARTING, EARLIEST)
        if START_TIME in self.options:
            moment = _number(self.options, START_TIME) or 0
            return Offset.first(table, self._snapshot_before(moment))
        if starting not in (EARLIEST, LATEST):
            if not starting.isdecimal() or self.handle.snapshot(int(starting)) is None:
                raise InvalidStatementError(
                    f"Cannot stream {self.handle.name} from {starting!r}: give earliest, latest "
                    "or the id of a snapshot that is kept."
                )
            return Offset.first(table, int(starting))
        if head is None:
            return Offset.first(table)
        return Offset.first(table, head, whole=starting == EARLIEST)

    def _snapshot_before(self, moment: int) -> int:
        line = list(self.handle.ancestors(self.handle.head_of(self.branch)))
        for snapshot in line:
            if snapshot.timestamp_ms <= moment:
                return snapshot.snapshot_id
        if line and line[-1].parent_id is not None:
            raise InvalidStatementError(
                f"Cannot stream {self.handle.name} since {moment} ms: snapshots from before "
                f"{line[-1].snapshot_id} have expired. Start at a later time, or at earliest."
            )
        return NO_SNAPSHOT

    def latest(self, position: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return up to where the next batch reads, after a position (None: a new query)."""
        start = self._first_offset if position is None else Offset.of(dict(position))
        self._refresh(start)
        most = [_number(self.options, name) for name in (MOST_FILES, MOST_ROWS)]
        head = self.handle.head_of(self.branch)
        if most == [None, None]:
            return (start if head is None else start.after(head)).to_dict()
        return self._limited(start, most[0], most[1]).to_dict()

    def _limited(self, start: Offset, files: int | None, rows: int | None) -> Offset:
        """Return the offset at which a batch has enough."""
        found, taken = start, [0, 0]
        for at, groups in self._after(start):
            for number, unit in _units(groups, max(at.index, 0)):
                held = [file for group in unit for file in group.files()]
                size = (len(held), sum(file.record_count or 0 for file in held))
                over = [
                    most is not None and taken[place] + size[place] > most
                    for place, most in enumerate((files, rows))
                ]
                if any(over) and taken[0]:
                    return found
                taken = [taken[0] + size[0], taken[1] + size[1]]
                found = replace(at, index=number)
            found = start.after(at.snapshot)
        return found

    def plan(
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> tuple[Callable[[Any], Iterable[pa.RecordBatch]], Sequence[Any]]:
        """Return a kernel and the tasks of what is between two offsets."""
        first, last = Offset.of(dict(start)), Offset.of(dict(end))
        if first == first.beginning:
            first = last.beginning  # which differ where the first batch is replayed
        if first == last:
            return scan_kernel, []
        self._refresh(first)
        self._validate_schema()
        groups = list(self._between(first, last))
        how = Settling(tuple(self.rows.arrow.names))
        view = replace(self._view, schema=self._rows_now)
        made = PlannedChanges(self.handle.name, context_of(view, how, TRUE), tuple(groups), how)
        tasks = made.tasks(SLOTS)
        if self.has_changes:
            return partial(final_changes, how), tasks
        context = scan_context(view)
        return scan_kernel, [ScanTask(context, task.files) for task in tasks]

    def _between(self, first: Offset, last: Offset) -> Iterator[ChangeGroup]:
        for at, groups in self._after(first):
            is_last = at.snapshot == last.snapshot
            until = last.index if is_last and last.index != ALL else len(groups)
            yield from groups[max(at.index, 0) : until]
            if is_last:
                return
        if first.snapshot != last.snapshot:
            raise self._broken(last.snapshot)

    # --- commits

    def _after(self, start: Offset) -> Iterator[tuple[Offset, list[ChangeGroup]]]:
        """Yield what is left of the start's snapshot, then every commit after it."""
        planner = self._planner
        if start.index != ALL:
            yield start, self._groups(planner, start)
        since = None if start.snapshot == NO_SNAPSHOT else start.snapshot
        commits = self.handle.format.commits_since(self.handle, self.branch, since)
        if commits is None:
            raise self._broken(start.snapshot)
        for commit in commits:
            at = start.after(commit.snapshot.snapshot_id, 0)
            yield at, self._of_commit(planner, commit)

    def _groups(self, planner: ChangePlanner, at: Offset) -> list[ChangeGroup]:
        snapshot = self._kept(at.snapshot)
        if at.whole:
            return list(planner.whole(snapshot, snapshot.sequence_number))
        commits = self.handle.format.commits_since(self.handle, self.branch, snapshot.parent_id)
        if not commits:
            raise self._broken(at.snapshot)
        return self._of_commit(planner, commits[0])

    def _of_commit(self, planner: ChangePlanner, commit: LandedCommit) -> list[ChangeGroup]:
        snapshot = commit.snapshot
        if not commit.changes_rows:
            return []
        if not self.has_changes and planner.removes_rows(commit):
            raise UnsupportedFeatureError(
                f"Cannot stream {self.handle.name}: snapshot {snapshot.snapshot_id} "
                f"({snapshot.operation}) deletes or updates rows, and this stream has added rows "
                "alone. Read it with changes=True."
            )
        return list(planner.of_commit(commit, snapshot.sequence_number))

    @property
    def _view(self) -> TableView:
        return self.handle.view(ref=self.branch)

    @property
    def _planner(self) -> ChangePlanner:
        validate_names(self._view)
        return ChangePlanner(
            self.handle,
            Span(self._view),
            TRUE,
            group_bytes=_WHOLE_GROUPS,
            images=self.has_changes,
        )

    # --- what may have happened to the table since

    def _refresh(self, start: Offset) -> None:
        self.handle = self.handle.format.refresh(self.handle)
        if start.table != self.handle.uuid:
            raise InvalidStatementError(
                f"Cannot go on streaming {self.handle.name}: the table was dropped and created "
                "again since the checkpoint was written. Start with a new checkpoint folder."
            )

    def _kept(self, snapshot_id: int) -> SnapshotInfo:
        found = self.handle.snapshot(snapshot_id)
        if found is None:
            raise self._broken(snapshot_id)
        return found

    def _broken(self, snapshot_id: int) -> InvalidStatementError:
        if self.handle.snapshot(snapshot_id) is None:
            cause = "has expired"
        else:
            cause = "is no ancestor of the branch's head any more (it was rolled back)"
        line = list(self.handle.ancestors(self.handle.head_of(self.branch)))
        oldest = f" The oldest snapshot available is {line[-1].snapshot_id}." if line else ""
        return InvalidStatementError(
            f"Cannot go on streaming {self.handle.name}: snapshot {snapshot_id}, up to which the "
            f"stream has read, {cause}.{oldest} Start with a new checkpoint folder, from earliest "
            "or from a snapshot that is kept; keep snapshots longer than the query may be down."
        )

    @property
    def _rows_now(self) -> Schema:
        """The columns that rows come in, with the field ids that they have now."""
        if self.handle.can.column_ids:
            return self.rows
        now = self._view.schema
        fields = [now.find((name,), case_sensitive=True) for name in self.rows.arrow.names]
        return Schema(pa.schema([each for each in fields if each is not None]), now.schema_id)

    def _found_now(self, column: pa.Field) -> pa.Field | None:
        now = self._view.schema
        if self.handle.can.column_ids:
            return now.by_id.get(field_id(column) or -1)
        return now.find((column.name,), case_sensitive=True)

    def _validate_schema(self) -> None:
        """Refuse to read on where a column is gone or has another type."""
        changed = [
            each.name
            for each in self.rows.arrow
            if (found := self._found_now(each)) is None or found.type != each.type
        ]
        if changed:
            raise InvalidStatementError(
                f"Cannot go on streaming {self.handle.name}: columns {shown(changed)} were dropped "
                "or have another type since the query started. Start the query again, with the "
                "same checkpoint, to read on in the new schema."
            )


def _units(
    groups: Sequence[ChangeGroup], first: int
) -> Iterator[tuple[int, Sequence[ChangeGroup]]]:
    """Yield what a batch takes whole, with the number of groups up to its end.

    Rewrites of one commit are one unit, and files of images: an update may take a row from one
    group to another, and its insert must not be in an earlier batch than its delete.
    """
    at = first
    while at < len(groups):
        end = at + 1
        while _is_shared(groups[at]) and end < len(groups) and _is_shared(groups[end]):
            end += 1
        yield end, groups[at:end]
        at = end


def _is_shared(group: ChangeGroup) -> bool:
    """Return whether an update may have one image in the group, and the other in another."""
    return bool(group.cancels or group.images)


def _number(options: Mapping[str, str], name: str) -> int | None:
    value = options.get(name)
    if value is None:
        return None
    if not value.isdecimal() or (name != START_TIME and not int(value)):
        raise InvalidStatementError(f"{name} must be a positive whole number, not {value!r}.")
    return int(value)
