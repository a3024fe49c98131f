"""convert_equality_deletes: equality delete files become position deletes or deletion vectors.

Comes in: a table handle, an engine, a filter. Goes out: the handle after the commit and a report.
Each data file that an equality delete may apply to is read once, its key columns alone; the rows
found are deleted by position, along with those that are already. In the same commit go all equality
delete files that no data file needs any more: with a filter those stay that a data file outside of
it needs. The snapshot is a `replace`: rows are what they were.

Others may go on meanwhile. Rows that they delete are merged in when this lands, equality deletes
that they add stay; where a data file went away, or one came that a removed equality delete would
apply to (a compaction keeps old sequence numbers), the work is planned again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.commit.outcome import commit_or_raise
from rowlake.commit.phases import Phase, reached
from rowlake.commit.rerun import rerun_on_conflict
from rowlake.maintain.deletes.delete_writing import DELETES_WRITTEN, WrittenDeletes
from rowlake.maintain.deletes.equality_kernel import EqualityTask, equality_kernel
from rowlake.maintain.deletes.position_deletes import writing_of
from rowlake.maintain.guard import check_outside_transaction
from rowlake.maintain.options import Given
from rowlake.model.change import Change, Operation, Requirements
from rowlake.model.files import Content
from rowlake.model.predicate import TRUE
from rowlake.model.report import Report
from rowlake.model.values import encode_partitions
from rowlake.plan.delete_index import DeleteIndex
from rowlake.plan.files import DELETE_COLUMNS, METRICS_COLUMNS, NAN_COLUMN, plan_files
from rowlake.plan.tasks import OPEN_FILE_BYTES, SPLIT_BYTES, pack, task_count, whole_files
from rowlake.prune.bind import bind
from rowlake.prune.match import may_match
from rowlake.prune.metrics import one_array
from rowlake.rowlevel.strategy import granularity_of
from rowlake.storage.files import Storage
from rowlake.verbs.read import scan_context
from rowlake.verbs.write import view_for_write
from rowlake.write.kernel import remove_written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from rowlake.engine.spark import Engine
    from rowlake.maintain.deletes.delete_writing import DeleteWriting
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.task import FileTask
    from rowlake.plan.files import FilePlan
    from rowlake.write.position_deletes import Partition

    Flags = NDArray[np.bool_]

PROCEDURE = "convert_equality_deletes"
GRANULARITY = "delete-granularity"


@dataclass(frozen=True)
class ConvertEqualityDeletesReport(Report):
    """What was converted.

    - `converted_equality_delete_files_count`: equality delete files whose rows are deleted by
      position now;
    - `removed_equality_delete_files_count`: those that went, dangling ones among them;
    - `added_position_delete_files_count`: position delete files, or vectors;
    - `rows_deleted`: rows that are newly deleted by position; `data_files_read`: of which the keys
      were read.
    """

    always_shown: ClassVar[tuple[str, ...]] = (
        "converted_equality_delete_files_count",
        "added_position_delete_files_count",
    )

    converted_equality_delete_files_count: int = 0
    removed_equality_delete_files_count: int = 0
    added_position_delete_files_count: int = 0
    rows_deleted: int = 0
    data_files_read: int = 0
    snapshot_id: int | None = None
    dry_run: bool = False


def convert_equality_deletes(
    handle: TableHandle,
    engine: Engine,
    *,
    where: Predicate | None = None,
    options: Mapping[str, Any] | None = None,
    branch: str = "main",
    dry_run: bool = False,
) -> tuple[TableHandle, ConvertEqualityDeletesReport]:
    """Convert the equality deletes of the data files that may hold rows of a filter."""
    check_outside_transaction(handle, PROCEDURE)

    def run(found: TableHandle) -> tuple[TableHandle, ConvertEqualityDeletesReport]:
        return _Run(found, engine, options, branch, dry_run=dry_run).run(where)

    return rerun_on_conflict(handle, run)


@dataclass(frozen=True)
class _Planned:
    """Data files to read, with all their deletes; rows of `deletes` that they use, and that go."""

    files: FilePlan
    deletes: pa.Table
    converted: int
    removed: NDArray[np.int64]

    @property
    def removed_keys(self) -> frozenset[tuple[str, int | None]]:
        """The equality delete files that go."""
        locations = self.deletes["location"].take(pa.array(self.removed)).to_pylist()
        return frozenset((location, None) for location in locations)

    @property
    def newest_removed(self) -> int | None:
        """The highest data sequence number of what goes."""
        numbers = self.deletes["data_sequence_number"].take(pa.array(self.removed))
        newest: int | None = pc.max(numbers).as_py()
        return newest


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
        self.storage = Storage(self.view.io_properties)
        given = Given(PROCEDURE, options, {GRANULARITY})
        default = granularity_of(self.view.properties)
        self.granularity = given.choice(GRANULARITY, ("file", "partition"), default)

    def run(self, where: Predicate | None) -> tuple[TableHandle, ConvertEqualityDeletesReport]:
        planned = self._planned(where)
        if planned is None:
            return self.handle, ConvertEqualityDeletesReport(dry_run=self.dry_run)
        reached(Phase.PLANNED, self.handle)
        found = self._written(planned.files)
        report = ConvertEqualityDeletesReport(
            converted_equality_delete_files_count=planned.converted,
            removed_equality_delete_files_count=len(planned.removed),
            added_position_delete_files_count=found.files.num_rows,
            rows_deleted=found.rows,
            data_files_read=found.read,
            dry_run=self.dry_run,
        )
        if self.dry_run or not (found.files.num_rows or len(planned.removed)):
            return self.handle, report
        try:
            change = self._change(planned, found)
        except BaseException:
            remove_written(found.files, self.storage)
            raise
        landed, committed = commit_or_raise(self.handle, change, self.storage, PROCEDURE)
        return landed, replace(report, snapshot_id=committed.snapshot_id)

    def _change(self, planned: _Planned, found: WrittenDeletes) -> Change:
        return Change(
            operation=Operation.REPLACE,
            added_deletes=found.files,
            removed_deletes=found.replaced_deletes | planned.removed_keys,
            requirements=Requirements(
                starting_snapshot_id=self.view.snapshot_id,
                no_new_deletes_for=found.data_files,
                files_exist=found.data_files,
                no_data_older_than=planned.newest_removed,
            ),
            branch=self.branch,
        )

    # --- planning

    def _planned(self, where: Predicate | None) -> _Planned | None:
        """Return what to read and what goes; None where there is no equality delete."""
        index = self._equality_index()
        if index.is_empty:
            return None
        predicate = None if where is None else bind(where, self.view.schema)
        more = () if predicate is None else (*METRICS_COLUMNS, NAN_COLUMN)
        plan = plan_files(self.view, None, self.storage, columns=more, runner=self.engine)
        converted, kept = np.zeros(0, np.int64), np.zeros(0, np.int64)
        chosen: dict[int, pa.Table] = {}
        for spec_id, data in plan.data.items():
            inside, outside = self._split(data, spec_id, index, predicate)
            if inside.num_rows:
                chosen[spec_id] = inside
                converted = np.union1d(converted, index.applied_to(inside, spec_id).used())
            kept = np.union1d(kept, index.applied_to(outside, spec_id).used())
        removed = np.setdiff1d(np.arange(index.files.num_rows), kept)
        return _Planned(replace(plan, data=chosen), index.files, len(converted), removed)

    def _equality_index(self) -> DeleteIndex:
        listing = self.view.format.list_files(self.view, TRUE, self.storage, runner=self.engine)
        by_equality = {
            spec_id: table.filter(pc.equal(table["content"], int(Content.EQUALITY_DELETES)))
            for spec_id, table in listing.deletes(DELETE_COLUMNS).items()
        }
        return DeleteIndex(by_equality, self.view.specs, self.view.schema)

    def _split(
        self, data: pa.Table, spec_id: int, index: DeleteIndex, predicate: Predicate | None
    ) -> tuple[pa.Table, pa.Table]:
        """Return the files with equality deletes that the filter selects, and the others."""
        touched = data.filter(pa.array(index.applied_to(data, spec_id).counts > 0)).combine_chunks()
        if predicate is None or not touched.num_rows:
            return touched, touched.slice(0, 0)
        spec = self.view.specs[spec_id]
        inside = may_match(touched, predicate, spec, self.view.schema)
        return touched.filter(inside).combine_chunks(), touched.filter(pc.invert(inside))

    # --- running

    def _written(self, plan: FilePlan) -> WrittenDeletes:
        writing = writing_of(self.view, self.granularity, dry_run=self.dry_run)
        tasks = self._tasks(plan, writing)
        if not tasks:
            return WrittenDeletes.of(DELETES_WRITTEN.empty_table())
        try:
            found = self.engine.run(
                equality_kernel,
                tasks,
                DELETES_WRITTEN,
                size_in_bytes=plan.size_in_bytes,
                label=f"converting equality deletes of {self.view.name}",
            )
        except BaseException:
            writing.remove_attempt()
            raise
        return WrittenDeletes.of(found)

    def _tasks(self, plan: FilePlan, writing: DeleteWriting) -> list[EqualityTask]:
        """Return few tasks of about equal weight; files with the same deletes side by side."""
        files = sorted(_files(plan), key=lambda pair: [one.key[0] for one in pair[0].deletes])
        weights = np.array([max(f.file_size_in_bytes, OPEN_FILE_BYTES) for f, _ in files], float)
        count = task_count(float(weights.sum()), SPLIT_BYTES, self.engine.parallelism)
        context = scan_context(self.view)
        return [
            EqualityTask(
                writing,
                context,
                tuple(files[place][0] for place in places.tolist()),
                tuple(files[place][1] for place in places.tolist()),
            )
            for places in pack(weights, count)
        ]


def _files(plan: FilePlan) -> list[tuple[FileTask, Partition]]:
    """Return the data files, each whole and with its encoded partition."""
    found: list[tuple[FileTask, Partition]] = []
    for spec_id, table in plan.data.items():
        encoded = encode_partitions(one_array(table.column("partition"))).to_pylist()
        tasks = whole_files(plan, spec_id)
        found += zip(tasks, map(tuple, encoded), strict=True)
    return found
