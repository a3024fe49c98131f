"""Which files of a commit a change feed reads.

Comes in: a span of commits. Goes out: `ChangeGroup`s. Of each commit three sets of data files can
hold changes: added ones (their live rows are inserts), removed ones (the rows that were live before
are deletes), and those that stayed while deletes that apply to them came or went. Deletes are
matched with files by the sequence-number rules of `plan.delete_index`, before and after the commit;
files that a predicate rules out are left out. Data files of the whole table are listed only where
a commit added or removed deletes, and only those are opened that the deletes can touch. A commit
that says itself what happened to its rows (`RowChanges`) needs no listing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import InvalidStatementError
from rowlake.model.format import FileAction
from rowlake.plan.delete_index import DeleteIndex
from rowlake.plan.files import (
    DELETE_COLUMNS,
    FILE_COLUMNS,
    METRICS_COLUMNS,
    NAN_COLUMN,
    FilePlan,
    plan_files,
)
from rowlake.plan.tasks import SPLIT_BYTES, split_starts, whole_files
from rowlake.prune.match import matching_files
from rowlake.prune.metrics import one_array
from rowlake.stream.changes_groups import sharing_groups
from rowlake.stream.changes_task import ChangeGroup, CommitMark, MarkedFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rowlake.engine.spark import Engine
    from rowlake.model.format import FileListing, FilesBySpec, LandedCommit, RowChanges
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.task import FileTask
    from rowlake.model.view import SnapshotInfo, TableView
    from rowlake.storage.files import Storage
    from rowlake.stream.changes_span import Span

# More than this is not compared in one task: its rows go to tasks by what they hold.
GROUP_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class ChangePlanner:
    """Plans the commits of a span; the predicate is bound to the schema of its end.

    Files that may share rows are in one group up to `group_bytes` (default `GROUP_BYTES`). Without
    `images` files of images are passed over: the rows are read from the table's own files.
    """

    handle: TableHandle
    span: Span
    predicate: Predicate
    engine: Engine | None = None
    group_bytes: int | None = None
    images: bool = True

    def groups(self) -> Iterator[ChangeGroup]:
        """Yield the groups of all commits."""
        ordinal = 0
        if self.span.first is not None:
            yield from self.whole(self.span.first, ordinal)
            ordinal = 1
        for number, commit in enumerate(self.span.commits, start=ordinal):
            yield from self.of_commit(commit, number)

    def of_commit(self, commit: LandedCommit, ordinal: int) -> Iterator[ChangeGroup]:
        """Yield the groups of one commit, always in the same order.

        Deletes go before inserts: first files with new deletes, then removed files, then rewrites
        (groups that have both), then added files. So a row that an update moved is deleted first.
        """
        return _CommitPlan(self, commit, _mark(ordinal, commit.snapshot)).groups()

    def removes_rows(self, commit: LandedCommit) -> bool:
        """Return whether a commit removed data files, or added deletes."""
        if commit.row_changes is not None:
            own = commit.row_changes(self.span.end)
            return bool(own.removed or own.kept)
        actions = (FileAction.REMOVED_DATA, FileAction.ADDED_DELETES)
        return any(commit.read(action) for action in actions)

    def whole(self, snapshot: SnapshotInfo, ordinal: int) -> Iterator[ChangeGroup]:
        """Yield all rows of a snapshot as inserts, always in the same order."""
        view = self.span.at(snapshot)
        plan = plan_files(view, self.predicate, self.storage, runner=self.engine)
        mark = _mark(ordinal, snapshot)
        for spec_id in plan.data:
            for file, offsets in zip(
                whole_files(plan, spec_id), _offsets(plan, spec_id), strict=True
            ):
                yield from _pieces(ChangeGroup(mark, added=(file,)), offsets)

    @property
    def storage(self) -> Storage:
        """The storage of the table's files."""
        return self.handle.storage

    def listing(self, view: TableView) -> FileListing:
        """Return the files of a view that may hold a row of the predicate."""
        return view.format.list_files(view, self.predicate, self.storage, runner=self.engine)


def _mark(ordinal: int, snapshot: SnapshotInfo) -> CommitMark:
    return CommitMark(ordinal, snapshot.snapshot_id, snapshot.timestamp_ms)


@dataclass(frozen=True)
class _CommitPlan:
    """One commit."""

    planner: ChangePlanner
    commit: LandedCommit
    mark: CommitMark

    def groups(self) -> Iterator[ChangeGroup]:
        if self._own is not None and self._own.images and self.planner.images:
            yield from self._images(self._own.images)
            return
        for before, after in self._marked():
            yield ChangeGroup(self.mark, marked=(MarkedFile(before, after),))
        removed = self._plan(FileAction.REMOVED_DATA)
        added = self._plan(FileAction.ADDED_DATA)
        if removed.file_count and added.file_count:
            yield from sorted(self._rewritten(removed, added), key=_deletes_first)
        else:
            yield from self._plain(removed, added)

    @cached_property
    def _own(self) -> RowChanges | None:
        """What the commit itself says of the rows that it changed."""
        read = self.commit.row_changes
        return None if read is None else read(self.planner.span.end)

    def _images(self, files: FilesBySpec) -> Iterator[ChangeGroup]:
        """Yield files of images; they have no deletes, and their bounds are not known."""
        plan = self._with_deletes(self.after, self._pruned(files), None)
        for spec_id in plan.data:
            for file in whole_files(plan, spec_id):
                yield ChangeGroup(self.mark, images=(file,))

    # --- added and removed files

    def _plan(self, action: FileAction) -> FilePlan:
        """Return files that the commit added or removed, with the deletes of their time."""
        data = self._pruned(self._files(action))
        if action is FileAction.REMOVED_DATA:
            return self._with_deletes(self.before, data, self._index_before if data else None)
        return self._with_deletes(self.after, data, self._index_of_added(data))

    def _files(self, action: FileAction) -> FilesBySpec:
        if self._own is None:
            return self.commit.read(action)
        return self._own.removed if action is FileAction.REMOVED_DATA else self._own.added

    def _index_of_added(self, data: FilesBySpec) -> DeleteIndex | None:
        """Return what may delete from added files: only the commit's own deletes are as new."""
        if self._own is not None:
            return self._index_after
        number = self.commit.snapshot.sequence_number
        oldest = [pc.min(table["data_sequence_number"]).as_py() for table in data.values()]
        if any(each is not None and each < number for each in oldest):
            return self._index_after
        return self._index(self._came) if self._came else None

    def _with_deletes(
        self, view: TableView, data: FilesBySpec, index: DeleteIndex | None
    ) -> FilePlan:
        return FilePlan(view, self.planner.predicate, data, index or self._index({}))

    def _plain(self, removed: FilePlan, added: FilePlan) -> Iterator[ChangeGroup]:
        for plan in (removed, added):
            for spec_id in plan.data:
                files = zip(whole_files(plan, spec_id), _offsets(plan, spec_id), strict=True)
                for file, offsets in files:
                    one = (file,)
                    sides = (one, ()) if plan is removed else ((), one)
                    yield from _pieces(ChangeGroup(self.mark, *sides), offsets)

    def _rewritten(self, removed: FilePlan, added: FilePlan) -> Iterator[ChangeGroup]:
        """Yield files of both sides that may share rows, together."""
        old, new = _as_one(removed), _as_one(added)
        for gone, came in sharing_groups(old.metrics, new.metrics, self.before.schema):
            before = tuple(old.tasks[place] for place in gone.tolist())
            after = tuple(new.tasks[place] for place in came.tolist())
            cancels = bool(before and after)
            has_ids = all(each.first_row_id is not None for each in (*before, *after))
            group = ChangeGroup(self.mark, before, after, (), cancels, has_ids)
            most = self.planner.group_bytes or GROUP_BYTES
            if cancels and group.size_in_bytes > most:
                yield from _one_by_one(group)
            else:
                yield group

    # --- files that stay

    def _marked(self) -> Iterator[tuple[FileTask, FileTask]]:
        """Yield files whose deletes changed, as they were before and after."""
        if not self._has_marked:
            return
        for spec_id, data in self._touched().items():
            before = self._with_deletes(self.before, {spec_id: data}, self._index_before)
            after = self._with_deletes(self.after, {spec_id: data}, self._index_after)
            pairs = zip(whole_files(before, spec_id), whole_files(after, spec_id), strict=True)
            yield from (pair for pair in pairs if pair[0].deletes != pair[1].deletes)

    @property
    def _has_marked(self) -> bool:
        if self._own is not None:
            return bool(self._own.kept)
        return bool(self._came or self._went) and self.commit.snapshot.parent_id is not None

    def _touched(self) -> dict[int, pa.Table]:
        """Return the files that stay and that new or removed deletes may apply to."""
        if self._own is not None:
            return self._pruned(self._own.kept)
        gone = pa.array(
            [
                location
                for table in self.commit.read(FileAction.REMOVED_DATA).values()
                for location in table["location"].to_pylist()
            ],
            pa.string(),
        )
        indexes = [self._index(files) for files in (self._came, self._went) if files]
        found = {}
        for spec_id, data in self._pruned(self._listing_before.data(_LISTED)).items():
            touched = np.zeros(data.num_rows, np.bool_)
            for index in indexes:
                touched |= ~index.applied_to(data, spec_id).clean
            stays = pc.invert(pc.is_in(data["location"], value_set=gone))
            chosen = data.filter(pc.and_(pa.array(touched), one_array(stays)))
            if chosen.num_rows:
                found[spec_id] = chosen
        return found

    # --- what the commit did, and the table around it

    @cached_property
    def before(self) -> TableView:
        span, parent = self.planner.span, self.commit.snapshot.parent_id
        return span.at(self.planner.handle.snapshot(parent))

    @cached_property
    def after(self) -> TableView:
        return self.planner.span.at(self.commit.snapshot)

    @cached_property
    def _came(self) -> FilesBySpec:
        return self.commit.read(FileAction.ADDED_DELETES)

    @cached_property
    def _went(self) -> FilesBySpec:
        return self.commit.read(FileAction.REMOVED_DELETES)

    @cached_property
    def _listing_before(self) -> FileListing:
        parent = self.commit.snapshot.parent_id
        if parent is not None and self.before.snapshot is None:
            raise InvalidStatementError(
                f"Cannot read the changes of {self.after.name}: snapshot {parent} has expired, and "
                f"without it the rows that snapshot {self.mark.snapshot_id} deleted are not known. "
                f"Start at snapshot {self.mark.snapshot_id} or later."
            )
        return self.planner.listing(self.before)

    @cached_property
    def _index_before(self) -> DeleteIndex:
        if self._own is not None:
            return self._index(self._own.deletes_before)
        return self._index(self._listing_before.deletes(DELETE_COLUMNS))

    @cached_property
    def _index_after(self) -> DeleteIndex:
        if self._own is not None:
            return self._index(self._own.deletes_after)
        return self._index(self.planner.listing(self.after).deletes(DELETE_COLUMNS))

    def _index(self, deletes: Mapping[int, pa.Table]) -> DeleteIndex:
        held = {spec_id: table for spec_id, table in deletes.items() if table.num_rows}
        return DeleteIndex(held, self.after.specs, self.after.schema)

    def _pruned(self, files: FilesBySpec) -> dict[int, pa.Table]:
        """Return the files that may hold a row of the predicate."""
        view, found = self.after, {}
        for spec_id, table in files.items():
            kept = matching_files(table, self.planner.predicate, view.specs[spec_id], view.schema)
            if kept.num_rows:
                found[spec_id] = kept
        return found


_LISTED = (*FILE_COLUMNS, *METRICS_COLUMNS, NAN_COLUMN)


@dataclass(frozen=True)
class _OneTable:
    """The files of all specs, in one order."""

    metrics: pa.Table
    tasks: list[FileTask]


def _as_one(plan: FilePlan) -> _OneTable:
    names = (*METRICS_COLUMNS, NAN_COLUMN, "record_count")
    tables = [table.select(names) for table in plan.data.values()]
    tasks = [task for spec_id in plan.data for task in whole_files(plan, spec_id)]
    return _OneTable(pa.concat_tables(tables).combine_chunks(), tasks)


def _deletes_first(group: ChangeGroup) -> int:
    return bool(group.added) + (not group.removed)


def _one_by_one(group: ChangeGroup) -> Iterator[ChangeGroup]:
    for file in group.removed:
        yield replace(group, removed=(file,), added=())
    for file in group.added:
        yield replace(group, removed=(), added=(file,))


def _offsets(plan: FilePlan, spec_id: int) -> list[list[int] | None]:
    offsets: list[list[int] | None] = plan.data[spec_id]["split_offsets"].to_pylist()
    return offsets


def _pieces(group: ChangeGroup, offsets: list[int] | None) -> Iterator[ChangeGroup]:
    """Yield a group of one file, in splits where the file is large."""
    (file,) = group.files()
    if file.file_size_in_bytes <= SPLIT_BYTES:
        yield group
        return
    starts = split_starts(file.file_size_in_bytes, offsets, SPLIT_BYTES)
    ends = [*starts[1:], file.file_size_in_bytes]
    for start, end in zip(starts, ends, strict=True):
        piece = (replace(file, start=start, length=end - start),)
        yield replace(
            group, removed=piece if group.removed else (), added=piece if group.added else ()
        )
