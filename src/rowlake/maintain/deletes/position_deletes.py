"""rewrite_position_delete_files: many small position delete files become few, or vectors.

Comes in: a table handle, an engine, Iceberg's options. Goes out: the handle after the last commit
and a report. No data file is read. What the new delete files delete is what the old ones did: they
keep the highest data sequence number of what they replace, and positions of data files that are
gone are dropped. The snapshot is a `replace`: rows are what they were.

Others may go on meanwhile. Rows that they delete are merged in when this lands; where a data file
went away, or the delete files did, the work is planned again.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rowlake.commit.outcome import commit_or_raise
from rowlake.commit.phases import Phase, reached
from rowlake.commit.rerun import rerun_on_conflict
from rowlake.errors import CommitConflictError
from rowlake.maintain.deletes.delete_writing import DELETES_WRITTEN, DeleteWriting, WrittenDeletes
from rowlake.maintain.deletes.position_kernel import PositionTask, position_kernel
from rowlake.maintain.deletes.position_plan import (
    PROCEDURE,
    DeleteGroup,
    PositionOptions,
    plan_position_groups,
)
from rowlake.maintain.guard import check_outside_transaction
from rowlake.model.change import Change, Operation, Requirements
from rowlake.model.report import Report
from rowlake.plan.tasks import OPEN_FILE_BYTES, SPLIT_BYTES, pack, task_count
from rowlake.storage.files import Storage
from rowlake.verbs.write import view_for_write
from rowlake.write.kernel import remove_written

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.engine.spark import Engine
    from rowlake.maintain.deletes.position_kernel import PositionGroup
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.view import TableView


@dataclass(frozen=True)
class RewritePositionDeleteFilesReport(Report):
    """What was rewritten; `added_bytes_count` is not known in a dry run.

    `failed_commits` counts the parts that lost against other writers (partial progress only).
    """

    always_shown: ClassVar[tuple[str, ...]] = (
        "rewritten_delete_files_count",
        "added_delete_files_count",
    )

    rewritten_delete_files_count: int = 0
    added_delete_files_count: int = 0
    rewritten_bytes_count: int = 0
    added_bytes_count: int = 0
    failed_commits: int = 0
    snapshot_id: int | None = None
    dry_run: bool = False

    def plus(self, other: RewritePositionDeleteFilesReport) -> RewritePositionDeleteFilesReport:
        """Return the sum of two parts, the other one being the later."""
        return replace(
            self,
            rewritten_delete_files_count=self.rewritten_delete_files_count
            + other.rewritten_delete_files_count,
            added_delete_files_count=self.added_delete_files_count + other.added_delete_files_count,
            rewritten_bytes_count=self.rewritten_bytes_count + other.rewritten_bytes_count,
            added_bytes_count=self.added_bytes_count + other.added_bytes_count,
            failed_commits=self.failed_commits + other.failed_commits,
            snapshot_id=self.snapshot_id if other.snapshot_id is None else other.snapshot_id,
        )


def rewrite_position_delete_files(
    handle: TableHandle,
    engine: Engine,
    *,
    options: Mapping[str, Any] | None = None,
    where: Predicate | None = None,
    branch: str = "main",
    dry_run: bool = False,
) -> tuple[TableHandle, RewritePositionDeleteFilesReport]:
    """Rewrite the position delete files of the partitions that a filter may select."""
    check_outside_transaction(handle, PROCEDURE)

    def run(found: TableHandle) -> tuple[TableHandle, RewritePositionDeleteFilesReport]:
        return _Run(found, engine, options, branch, dry_run=dry_run).run(where)

    return rerun_on_conflict(handle, run)


class _Run:
    """One try."""

    def __init__(
        self,
        handle: TableHandle,
        engine: Engine,
        options: Mapping[str, Any] | None,
        branch: str,
        *,
        dry_run: bool,
    ) -> None:
        self.handle, self.engine, self.branch, self.dry_run = handle, engine, branch, dry_run
        self.view = view_for_write(handle, branch)
        self.options = PositionOptions.of(options, self.view)
        self.storage = Storage(self.view.io_properties)

    def run(self, where: Predicate | None) -> tuple[TableHandle, RewritePositionDeleteFilesReport]:
        groups = plan_position_groups(self.view, where, self.options, self.storage, self.engine)
        report = RewritePositionDeleteFilesReport(dry_run=self.dry_run)
        if not groups:
            return self.handle, report
        if not self.options.partial_progress or self.dry_run:
            return self._rewrite(groups)
        return self._step_by_step(groups, report)

    def _step_by_step(
        self, groups: list[DeleteGroup], report: RewritePositionDeleteFilesReport
    ) -> tuple[TableHandle, RewritePositionDeleteFilesReport]:
        """Commit some groups at a time; those that lose against others are left as they were."""
        size = -(-len(groups) // self.options.max_commits)
        lost: CommitConflictError | None = None
        for start in range(0, len(groups), size):
            try:
                self.handle, done = self._rewrite(groups[start : start + size])
            except CommitConflictError as error:
                lost, done = error, RewritePositionDeleteFilesReport(failed_commits=1)
            report = report.plus(done)
        if lost is not None and report.snapshot_id is None:
            raise lost
        return self.handle, report

    def _rewrite(
        self, groups: Sequence[DeleteGroup]
    ) -> tuple[TableHandle, RewritePositionDeleteFilesReport]:
        reached(Phase.PLANNED, self.handle)
        found = self._written(groups)
        report = RewritePositionDeleteFilesReport(
            rewritten_delete_files_count=sum(len(group.removed) for group in groups),
            added_delete_files_count=found.files.num_rows,
            rewritten_bytes_count=sum(group.size_in_bytes for group in groups),
            added_bytes_count=found.size_in_bytes,
            dry_run=self.dry_run,
        )
        if self.dry_run:
            return self.handle, report
        try:
            change = self._change(groups, found)
        except BaseException:
            remove_written(found.files, self.storage)
            raise
        landed, committed = commit_or_raise(self.handle, change, self.storage, PROCEDURE)
        return landed, replace(report, snapshot_id=committed.snapshot_id)

    def _change(self, groups: Sequence[DeleteGroup], found: WrittenDeletes) -> Change:
        return Change(
            operation=Operation.REPLACE,
            added_deletes=found.files,
            removed_deletes=frozenset((place, None) for group in groups for place in group.removed),
            delete_sequence_numbers=found.sequence_numbers,
            requirements=Requirements(
                starting_snapshot_id=self.view.snapshot_id,
                no_new_deletes_for=found.data_files,
                files_exist=found.data_files,
            ),
            branch=self.branch,
        )

    def _written(self, groups: Sequence[DeleteGroup]) -> WrittenDeletes:
        """Merge and write in tasks."""
        writing = writing_of(self.view, self.options.granularity, dry_run=self.dry_run)
        parts = [part for group in groups for part in group.parts]
        tasks = _tasks(writing, parts, self.engine.parallelism)
        if not tasks:
            return WrittenDeletes.of(DELETES_WRITTEN.empty_table())
        try:
            found = self.engine.run(
                position_kernel,
                tasks,
                DELETES_WRITTEN,
                size_in_bytes=sum(group.size_in_bytes for group in groups),
                label=f"rewriting position deletes of {self.view.name}",
            )
        except BaseException:
            writing.remove_attempt()
            raise
        return WrittenDeletes.of(found)


def writing_of(view: TableView, granularity: str, *, dry_run: bool) -> DeleteWriting:
    """Return how tasks of one operation write delete files."""
    return DeleteWriting(
        folder=view.data_folder,
        as_vectors=view.can.deletion_vectors,
        vectors=view.layout.vectors,
        granularity=granularity,
        operation_id=str(uuid.uuid4()),
        io_properties=view.io_properties,
        dry_run=dry_run,
    )


def _tasks(
    writing: DeleteWriting, parts: Sequence[PositionGroup], slots: int
) -> list[PositionTask]:
    """Return few tasks of about equal weight."""
    weights = np.array([_weight(part) for part in parts], float)
    count = task_count(float(weights.sum()), SPLIT_BYTES, slots)
    return [
        PositionTask(writing, tuple(parts[place] for place in places.tolist()))
        for places in pack(weights, count)
    ]


def _weight(part: PositionGroup) -> float:
    sizes = [one.delete.file_size_in_bytes for one in part.deletes]
    return float(sum(max(size, OPEN_FILE_BYTES) for size in sizes))
