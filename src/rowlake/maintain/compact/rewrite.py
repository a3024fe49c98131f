"""rewrite_data_files: small files into large ones, deletes folded in, rows left as they are.

Comes in: a table handle, a strategy, a filter and options. Goes out: the handle after the commits
and a `RewriteReport`. Groups of files (`rewrite_plan`) become tasks (`rewrite_kernel`); what came
of them lands as a `replace` snapshot that keeps the sequence number that it started from, so that
newer equality deletes still apply. Rows that others change meanwhile are carried over
(`commit.carry`). With partial progress, or within a budget of time, groups land in several commits,
and what has landed stays when the rest is stopped.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from rowlake.commit.compaction_rebase import Carry
from rowlake.commit.outcome import Phases, commit_or_raise
from rowlake.commit.phases import Phase, reached
from rowlake.errors import CommitConflictError, EngineError, RowlakeError
from rowlake.maintain.compact.rewrite_kernel import REWRITTEN, rewrite_kernel
from rowlake.maintain.compact.rewrite_locate import by_row_id
from rowlake.maintain.compact.rewrite_ordered import rewrite_ordered
from rowlake.maintain.compact.rewrite_plan import RewriteOptions, plan_groups, within_bytes
from rowlake.maintain.compact.rewrite_tasks import Done, RewriteLayout, done_of, making_of
from rowlake.maintain.deletes.dangling import remove_dangling_deletes
from rowlake.maintain.guard import check_outside_transaction
from rowlake.model.change import Change, Operation, Requirements
from rowlake.model.health import count_text
from rowlake.model.provenance import noted
from rowlake.model.report import Report
from rowlake.storage.files import Storage
from rowlake.verbs.write import view_for_write
from rowlake.write.kernel import remove_attempt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rowlake.engine.spark import Engine
    from rowlake.maintain.compact.rewrite_locate import ByRowId
    from rowlake.maintain.compact.rewrite_plan import FileGroup
    from rowlake.maintain.compact.rewrite_tasks import Making
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate

VERB = "rewrite_data_files"


@dataclass(frozen=True)
class RewriteReport(Report):
    """What a compaction did, or would do (`dry_run`); the first five are Iceberg's columns.

    `files` are the locations that were rewritten; `rewritten_sizes` and `added_sizes` are bytes.
    """

    always_shown: ClassVar[tuple[str, ...]] = (
        "rewritten_data_files_count",
        "added_data_files_count",
    )

    rewritten_data_files_count: int = 0
    added_data_files_count: int = 0
    rewritten_bytes_count: int = 0
    failed_data_files_count: int = 0
    removed_delete_files_count: int = 0
    added_bytes_count: int = 0
    groups: int = 0
    given_up_files_count: int = 0
    snapshot_ids: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    considered_files_count: int = 0
    partitions_count: int = 0
    rewritten_sizes: tuple[int, ...] = ()
    added_sizes: tuple[int, ...] = ()
    dry_run: bool = False
    seconds: float = 0.0
    phases: Mapping[str, float] = field(default_factory=dict)

    def rows(self) -> list[tuple[str, str]]:
        """Return what is worth showing; lists of sizes are not."""
        return [row for row in super().rows() if row[0] not in ("rewritten sizes", "added sizes")]


@dataclass(frozen=True)
class Request:
    """What to rewrite, and how far to go."""

    where: Predicate | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    layout: RewriteLayout = field(default_factory=RewriteLayout)
    branch: str = "main"
    dry_run: bool = False
    max_bytes: int | None = None
    max_seconds: float | None = None
    progress: Any = None


def rewrite_data_files(
    handle: TableHandle, engine: Engine, request: Request
) -> tuple[TableHandle, RewriteReport]:
    """Compact a table; a second run finds nothing to do."""
    check_outside_transaction(handle, VERB)
    run = _Run(handle, engine, request)
    groups = run.planned()
    if request.dry_run:
        return handle, run.foreseen(groups)
    for step in run.steps(groups):
        run.rewrite(step)
        if run.is_out_of_time:
            break
    run.check_failures()
    if run.options.remove_dangling_deletes:
        run.remove_dangling()
    return run.handle, run.reported()


def rewrite_files(
    handle: TableHandle, engine: Engine, locations: frozenset[str], branch: str
) -> TableHandle:
    """Rewrite these data files of a branch, whatever their size; their deletes are folded in."""
    run = _Run(handle, engine, Request(options={"rewrite-all": "true"}, branch=branch))
    groups = [kept for group in run.planned() if (kept := group.of(locations)).files]
    if groups:
        run.rewrite(groups)
    return run.handle


class _Run:
    """One compaction; `report` grows with each commit."""

    def __init__(self, handle: TableHandle, engine: Engine, request: Request) -> None:
        self.handle, self.engine, self.request = handle, engine, request
        self.view = view_for_write(handle, request.branch)
        options = RewriteOptions.of(request.options, self.view)
        self.options = replace(options, order_id=request.layout.cluster_order_id)
        self.storage = Storage(self.view.io_properties)
        self.phases = Phases()
        self.report = RewriteReport()
        self.failures: list[RowlakeError] = []

    @property
    def is_out_of_time(self) -> bool:
        """True where the budget of time is used up."""
        limit = self.request.max_seconds
        return limit is not None and self.phases.total >= limit

    def planned(self) -> list[FileGroup]:
        """Return the groups to rewrite."""
        if self.view.snapshot is None:
            return []
        with self.phases.phase("plan"):
            planned = plan_groups(
                self.view, self.request.where, self.options, self.storage, self.engine
            )
        self._count(considered_files_count=planned.considered)
        return within_bytes(planned.groups, self.request.max_bytes)

    def steps(self, groups: list[FileGroup]) -> Iterator[list[FileGroup]]:
        """Yield the groups of each commit: one commit, unless progress shall land in parts."""
        options = self.options
        if not groups:
            return
        if self.request.max_seconds is not None:
            count = options.concurrent_groups
        elif options.partial_progress:
            count = -(-len(groups) // options.max_commits)
        else:
            count = len(groups)
        for start in range(0, len(groups), count):
            yield groups[start : start + count]

    def foreseen(self, groups: list[FileGroup]) -> RewriteReport:
        """Return what a real run would do."""
        making = making_of(self.view, self.options, self.request.layout)
        return replace(
            self.report,
            rewritten_data_files_count=sum(len(group.files) for group in groups),
            added_data_files_count=sum(making.files_of(group) for group in groups),
            rewritten_bytes_count=sum(group.size_in_bytes for group in groups),
            groups=len(groups),
            partitions_count=_partitions_in(groups),
            files=tuple(file.location for group in groups for file in group.files),
            dry_run=True,
            seconds=self.phases.total,
            phases=self.phases.seconds,
        )

    def rewrite(self, groups: list[FileGroup]) -> None:
        """Rewrite some groups and commit; with partial progress a failure is only counted."""
        try:
            self._rewrite(groups)
        except CommitConflictError as error:
            if not error.retryable and not error.gave_up:
                raise  # the table or its branch is gone
            # Others changed all that was rewritten: it stays as they left it.
            self.failures.append(error)
            self._count(given_up_files_count=_files_in(groups))
        except RowlakeError as error:
            if not self.options.partial_progress:
                raise
            self.failures.append(error)
            self._count(failed_data_files_count=_files_in(groups))

    def _rewrite(self, groups: list[FileGroup]) -> None:
        making = making_of(self.view, self.options, self.request.layout)
        reached(Phase.PLANNED, self.handle)
        with self.phases.phase("write"):
            done = self._done(groups, making)
        change = self._change(done)
        locate = self._locate(groups, making, done) if self.view.can.row_ids else None
        carry = Carry(change, done.parts, self.storage, self.view.data_folder, locate)
        with self.phases.phase("commit"):
            self.handle, committed = commit_or_raise(
                self.handle, change, self.storage, VERB, rebase=carry
            )
        landed, made = committed.change, committed.snapshot_id
        sizes = {f.location: f.file_size_in_bytes for group in groups for f in group.files}
        snapshot = self.handle.snapshot(made)
        counted = snapshot.summary if snapshot else {}
        removed = [sizes[location] for location in sorted(landed.removed_data)]
        added = landed.added_data["file_size_in_bytes"].to_pylist()
        self._count(
            groups=len(groups),
            partitions_count=_partitions_in(groups),
            rewritten_data_files_count=len(removed),
            rewritten_bytes_count=sum(removed),
            rewritten_sizes=tuple(removed),
            added_data_files_count=len(added),
            added_bytes_count=sum(added),
            added_sizes=tuple(added),
            removed_delete_files_count=int(counted.get("removed-delete-files", 0)),
            given_up_files_count=_files_in(groups) - len(landed.removed_data),
            snapshot_ids=(made,),
            files=tuple(sorted(landed.removed_data)),
        )

    def _done(self, groups: list[FileGroup], making: Making) -> Done:
        alone = len(groups) < self.engine.parallelism
        large = [group for group in groups if making.is_large(group, is_alone=alone)]
        others = [group for group in groups if not making.is_large(group, is_alone=alone)]
        try:
            done = [self._by_one_task_each(others, making)] if others else []
            # One after the other: what is split lies on a disk, all of a group at once.
            done += [self._in_ranges(group, making) for group in large]
        except BaseException:
            # The answers of tasks that had finished are lost, so their files are looked for.
            with suppress(RowlakeError):
                remove_attempt(making.write, self.storage)
            raise
        return Done(
            pa.concat_tables([each.files for each in done]),
            tuple(part for each in done for part in each.parts),
        )

    def _by_one_task_each(self, groups: list[FileGroup], making: Making) -> Done:
        tasks = making.tasks(groups)
        answers = self.engine.run(
            rewrite_kernel,
            tasks,
            REWRITTEN,
            size_in_bytes=sum(group.size_in_bytes for group in groups),
            label=f"compacting {self.view.name}",
            progress=self.request.progress,
        )
        return done_of(answers, tasks)

    def _in_ranges(self, group: FileGroup, making: Making) -> Done:
        return rewrite_ordered(self.view, self.engine, group, making, self.request.progress)

    def _locate(self, groups: list[FileGroup], making: Making, done: Done) -> ByRowId:
        sources = {file.location: file for group in groups for file in group.files}
        return by_row_id(self.engine, making.context, sources, done.files)

    def _change(self, done: Done) -> Change:
        snapshot = self.view.snapshot
        can_keep = self.view.can.sequence_numbers
        keeps_number = self.options.use_starting_sequence_number and can_keep
        return Change(
            Operation.REPLACE,
            added_data=done.files,
            removed_data=frozenset(
                source.location for part in done.parts for source in part.sources
            ),
            data_sequence_number=snapshot.sequence_number if snapshot and keeps_number else None,
            requirements=Requirements(starting_snapshot_id=self.view.snapshot_id),
            branch=self.request.branch,
            properties=noted(VERB),  # here, since `Carry` makes the change that is committed
        )

    def check_failures(self) -> None:
        """Check that no more commits failed than the options of partial progress allow."""
        failed, allowed = len(self.failures), self.options.max_failed_commits
        if not self.options.partial_progress or failed <= allowed:
            return
        landed = count_text(len(self.report.snapshot_ids), "commit")
        raise EngineError(
            f"Cannot finish {VERB} of {self.view.name}: {count_text(failed, 'commit')} failed, and "
            f"partial-progress.max-failed-commits is {allowed}. The last failure: "
            f"{self.failures[-1]} The table keeps what landed ({landed}); run it again for the "
            "rest, in smaller parts with a higher partial-progress.max-commits."
        ) from self.failures[-1]

    def remove_dangling(self) -> None:
        """Remove the delete files that apply to nothing any more."""
        with self.phases.phase("dangling"):
            self.handle, removed = remove_dangling_deletes(
                self.handle, self.engine, self.request.branch
            )
        self._count(removed_delete_files_count=removed)

    def reported(self) -> RewriteReport:
        """Return what was done."""
        return replace(self.report, seconds=self.phases.total, phases=self.phases.seconds)

    def _count(self, **more: Any) -> None:
        sums = {name: getattr(self.report, name) + value for name, value in more.items()}
        self.report = replace(self.report, **sums)


def _partitions_in(groups: list[FileGroup]) -> int:
    found = {
        (file.spec_id, partition)
        for group in groups
        for file, partition in zip(group.files, group.partitions, strict=True)
    }
    return len(found)


def _files_in(groups: list[FileGroup]) -> int:
    return sum(len(group.files) for group in groups)
