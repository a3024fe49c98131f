"""Row-level operations run: plan, match and write in tasks, commit.

Comes in: a table handle and a `RowChange`. Goes out: the handle after the commit and a `Result`.
Files that cannot hold a matching row (metadata bounds, then the source's real key ranges and
partitions) are not opened; files that lie wholly inside a DELETE's predicate are removed unread.
Nothing to change: no commit.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from rowlake.commit.outcome import Phases, commit_or_raise
from rowlake.commit.rerun import (
    by_any_change,
    by_nothing_else,
    by_same_rows,
    rerun_on_conflict,
)
from rowlake.errors import InternalError, InvalidStatementError, RowlakeError
from rowlake.model.change import Change, Isolation, Operation, Requirements
from rowlake.model.files import WRITTEN_FILES, Content
from rowlake.model.predicate import TRUE, conjunction
from rowlake.model.result import Result
from rowlake.plan.files import plan_files
from rowlake.prune.bind import bind
from rowlake.prune.match import must_match
from rowlake.rowlevel.kernel import change_kernel
from rowlake.rowlevel.ranges import source_ranges
from rowlake.rowlevel.strategy import Way, granularity_of, mode_for
from rowlake.rowlevel.task import OUTCOMES, ChangeTask
from rowlake.rowlevel.tasks import TaskLayout, change_tasks, insert_tasks, placed_files
from rowlake.storage.files import Storage
from rowlake.verbs.read import scan_context
from rowlake.verbs.write import view_for_write
from rowlake.write.context import write_context
from rowlake.write.kernel import remove_attempt, remove_written

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rowlake.commit.rerun import Allows
    from rowlake.engine.spark import Engine, Kernel
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.view import TableView
    from rowlake.plan.files import FilePlan
    from rowlake.rowlevel.operation import RowChange
    from rowlake.rowlevel.runner import T
    from rowlake.rowlevel.tasks import Placed
    from rowlake.verbs.write import WriteOptions

# A data file's vector is made by one task, so files are not split.
_WHOLE_FILES = {"read.split.target-size": str(1 << 62)}
# The settings of Iceberg know three operations.
_SETTINGS = {"delete": "delete", "update": "update", "merge": "merge", "upsert": "merge"}


def change_rows(
    handle: TableHandle, engine: Engine, change: RowChange, options: WriteOptions
) -> tuple[TableHandle, Result]:
    """Run an operation; replanned, where it may be, when another commit forbids this one.

    A compaction changes no rows, so after one each operation is: its source is staged, or a
    predicate. Only rows that were found by position must be found again by who found them
    (`find_again`).
    """
    phases, runs = Phases(), []

    def run(found: TableHandle) -> tuple[TableHandle, Result]:
        runs.append(found)
        landed, result = _Run(found, engine, change, options, phases).run()
        return landed, replace(result, retries=result.retries + len(runs) - 1)

    if change.matching.position is not None:
        return run(handle)
    return rerun_on_conflict(handle, run, allows=_allows(change, options.branch))


def find_again(
    handle: TableHandle,
    find: Callable[[TableHandle], T],
    options: WriteOptions,
    *,
    reads_target: bool = False,
) -> T:
    """Find rows by position and change them; after a compaction, which moved them, again.

    `reads_target`: what they are changed to was read from the table before, and is not read again.
    """
    allows = by_nothing_else(options.branch) if reads_target else by_same_rows
    return rerun_on_conflict(handle, find, allows=allows)


def _allows(change: RowChange, branch: str) -> Allows:
    if change.reads_target:
        return by_nothing_else(branch)
    return by_any_change if change.reruns else by_same_rows


def predict(
    handle: TableHandle,
    engine: Engine,
    change: RowChange,
    options: WriteOptions,
    kernel: Kernel,
) -> Predicted:
    """Plan as an operation does; `kernel` finds what it would do, and writes nothing."""
    run = _Run(handle, engine, change, options)
    planned = run.planned()
    return Predicted(
        run.view,
        planned,
        run._done(planned, kernel),
        run._isolation(),
        run._size_in_bytes(planned),
    )


@dataclass(frozen=True)
class Predicted:
    """What an operation would do."""

    view: TableView
    planned: Planned
    done: Done
    isolation: Isolation
    size_in_bytes: int


@dataclass(frozen=True)
class Planned:
    """What an operation will look at: files that may match, files that go unread."""

    files: FilePlan
    conflict_filter: Predicate
    removed: Mapping[str, int]
    placed: list[Placed]
    template: ChangeTask

    @property
    def files_pruned(self) -> int:
        """How many data files are not opened."""
        return self.files.files_considered - len(self.placed) - len(self.removed)


class _Run:
    """One try of one operation."""

    def __init__(
        self,
        handle: TableHandle,
        engine: Engine,
        change: RowChange,
        options: WriteOptions,
        phases: Phases | None = None,
    ) -> None:
        if change.staged is not None:
            change = replace(change, staged=change.staged.within_memory())
        self.handle, self.engine, self.change, self.options = handle, engine, change, options
        self.view = view_for_write(handle, options.branch)
        self.storage = Storage(self.view.io_properties)
        self.phases = phases or Phases()

    def run(self) -> tuple[TableHandle, Result]:
        with self.phases.phase("plan"):
            planned = self.planned()
        with self.phases.phase("write"):
            done = self._done(planned)
        if not planned.removed and not done.changes_anything:
            return self.handle, self._result(planned, done)
        try:
            change = self._commit_change(planned, done)
        except BaseException:
            remove_written(done.files, self.storage)
            raise
        with self.phases.phase("commit"):
            landed, committed = commit_or_raise(self.handle, change, self.storage, self.change.verb)
        result = replace(
            self._result(planned, done),
            snapshot_id=committed.snapshot_id,
            delete_files_added=committed.change.added_deletes.num_rows,
            delete_files_removed=len(committed.change.removed_deletes),
            retries=committed.retries,
        )
        return landed, result

    # --- planning

    def planned(self) -> Planned:
        """Return what to look at."""
        change, view = self.change, self.view
        wanted = conjunction(change.predicate, source_ranges(change, view.schema))
        predicate = TRUE if change.touches_unmatched else bind(wanted, view.schema)
        files = plan_files(
            replace(view, properties={**view.properties, **_WHOLE_FILES}),
            predicate,
            self.storage,
            whole_files=True,
            runner=self.engine,
        )
        removed = _inside(files) if change.deletes_all_matched else {}
        template = self._template()
        layout = TaskLayout(change.staged)
        placed = [
            one
            for one in placed_files(_without(files, removed), layout, template)
            if one.parts or change.staged is None or change.touches_unmatched
        ]
        self._validate_found()
        return Planned(files, predicate, removed, placed, template)

    def _validate_found(self) -> None:
        """Rows that were found by position are looked for in the snapshot they were found in.

        What landed since is the commit's to judge, as for rows that tasks find.
        """
        change = self.change
        if change.matching.position is not None and change.snapshot_id != self.view.snapshot_id:
            raise InternalError(
                f"Rows of {self.view.name} were found at snapshot {change.snapshot_id}, but are to "
                f"be changed at {self.view.snapshot_id}."
            )

    def _template(self) -> ChangeTask:
        view, change = self.view, self.change
        context = replace(
            scan_context(view),
            predicate=None if change.predicate == TRUE else bind(change.predicate, view.schema),
        )
        folder = view.properties.get("write.data.path") or f"{view.location}/data"
        setting = _SETTINGS[change.verb]
        return ChangeTask(
            context=context,
            write=write_context(
                view,
                operation_id=str(uuid.uuid4()),
                row_lineage=view.can.row_ids,
                sort="local" if view.sort_order.fields else "none",
            ),
            clauses=change.clauses,
            matching=change.matching,
            mode=mode_for(self.options, view, setting),
            delete_folder=folder.rstrip("/"),
            as_vectors=view.can.deletion_vectors,
            granularity=granularity_of(view.properties),
            staged_schema=None if change.staged is None else change.staged.schema,
            checks_cardinality=change.checks_cardinality,
            skips_unchanged=change.skips_unchanged,
            rejects_matches=change.rejects_matches,
        )

    # --- running

    def _done(self, planned: Planned, kernel: Kernel = change_kernel) -> Done:
        change, staged = self.change, self.change.staged
        slots = self.engine.parallelism
        tasks = change_tasks(
            planned.template, planned.placed, staged, slots=slots, inserts=change.inserts
        )
        first = self._run_tasks(tasks, self._size_in_bytes(planned), kernel)
        done = Done.of(first)
        if not change.inserts or staged is None or not done.matched:
            return done
        try:
            rest = insert_tasks(planned.template, done.matched, staged, slots=slots)
            second = self._run_tasks(rest, _size(staged.rows), kernel)
        except BaseException:
            remove_written(done.files, self.storage)
            raise
        return Done.of(pa.concat_tables([first, second]))

    def _size_in_bytes(self, planned: Planned) -> int:
        """Return what the tasks may read: whole data files and all staged rows."""
        staged = self.change.staged
        held = 0 if staged is None else _size(staged.rows)
        return held + sum(one.file.file_size_in_bytes for one in planned.placed)

    def _run_tasks(self, tasks: list[ChangeTask], size_in_bytes: int, kernel: Kernel) -> pa.Table:
        if not tasks:
            return OUTCOMES.empty_table()
        try:
            return self.engine.run(
                kernel,
                tasks,
                OUTCOMES,
                size_in_bytes=size_in_bytes,
                label=f"{self.change.verb} on {self.view.name}",
                progress=self.options.progress,
            )
        except BaseException:
            # The answers of tasks that had finished are lost, so their files are looked for. A
            # storage that cannot be listed must not hide why the operation failed.
            with suppress(RowlakeError):
                remove_attempt(tasks[0].write, self.storage)
            raise

    # --- committing

    def _commit_change(self, planned: Planned, done: Done) -> Change:
        view, options = self.view, self.options
        data, deletes = done.data, done.deletes
        touched = done.replaced | done.marked | set(planned.removed)
        return Change(
            operation=_operation(data, touched),
            added_data=data,
            added_deletes=deletes,
            removed_data=done.replaced | set(planned.removed),
            removed_deletes=done.replaced_deletes,
            requirements=Requirements(
                starting_snapshot_id=view.snapshot_id,
                conflict_detection_filter=planned.conflict_filter,
                # A key that another writer inserted meanwhile must not be there twice.
                no_new_data=self.change.reruns or self._isolation() is Isolation.SERIALIZABLE,
                no_new_deletes_for=touched,
                files_exist=touched,
            ),
            branch=options.branch,
            stage_only=options.stage_only,
            properties={**self._counted(planned, done), **options.properties},
        )

    def _isolation(self) -> Isolation:
        if self.options.isolation:
            return self.options.isolation
        setting = f"write.{_SETTINGS[self.change.verb]}.isolation-level"
        text = self.view.properties.get(setting, Isolation.SERIALIZABLE.value)
        try:
            return Isolation(text.strip().lower())
        except ValueError:
            raise InvalidStatementError(
                f"Cannot use table property {setting}={text[:80]}: expected serializable or "
                f"snapshot."
            ) from None

    def _counted(self, planned: Planned, done: Done) -> dict[str, str]:
        """Return the counts of rows, as the snapshot's summary has them."""
        counts = {
            "updated": done.updated,
            "deleted": done.deleted + sum(planned.removed.values()),
            "inserted": done.inserted,
        }
        return {f"rowlake.rows-{name}": str(count) for name, count in counts.items()}

    def _result(self, planned: Planned, done: Done) -> Result:
        return Result(
            operation=self.change.verb,
            rows_updated=done.updated,
            rows_deleted=done.deleted + sum(planned.removed.values()),
            rows_inserted=done.inserted,
            rows_copied=done.copied,
            rows_unchanged=done.unchanged,
            data_files_added=done.data.num_rows,
            data_files_removed=len(done.replaced) + len(planned.removed),
            delete_files_added=done.deletes.num_rows,
            delete_files_removed=len(done.replaced_deletes),
            bytes_written=_written(done.files),
            bytes_read=done.bytes_read,
            files_considered=planned.files.files_considered,
            files_pruned=planned.files_pruned,
            files_matched=len(planned.removed) + len(done.replaced) + len(done.marked),
            seconds=self.phases.total,
            phases=self.phases.seconds,
        )


@dataclass(frozen=True)
class Done:
    """What the tasks did, put together: `changed` by file; `matched` source rows by part."""

    changed: list[dict[str, Any]]
    updated: int
    deleted: int
    inserted: int
    copied: int
    unchanged: int
    bytes_read: int
    replaced: frozenset[str]
    marked: frozenset[str]
    replaced_deletes: frozenset[tuple[str, int | None]]
    matched: Mapping[int, bytes]
    files: pa.Table

    @property
    def changes_anything(self) -> bool:
        """True where there is something to commit."""
        return bool(self.files.num_rows or self.replaced)

    @property
    def data(self) -> pa.Table:
        """The data files written."""
        return self.files.filter(pc.equal(self.files["content"], int(Content.DATA)))

    @property
    def deletes(self) -> pa.Table:
        """The delete files written."""
        return self.files.filter(pc.not_equal(self.files["content"], int(Content.DATA)))

    @classmethod
    def of(cls, outcomes: pa.Table) -> Done:
        """Return the sum of what tasks report."""
        is_file = pc.is_valid(outcomes["file"])
        rows: list[dict[str, Any]] = (
            outcomes.filter(pc.invert(is_file)).drop_columns(["file"]).to_pylist()
        )
        changed = [row for row in rows if row["source"] is not None]
        marked = {row["source"] for row in changed if row["way"] == Way.MARK.value}
        return cls(
            changed=changed,
            updated=_total(rows, "updated"),
            deleted=_total(rows, "deleted"),
            inserted=_total(rows, "inserted"),
            copied=_total(rows, "copied"),
            unchanged=_total(rows, "unchanged"),
            bytes_read=_total(rows, "bytes_read"),
            replaced=frozenset(row["source"] for row in changed) - marked,
            marked=frozenset(marked),
            replaced_deletes=frozenset(
                (old["location"], old["content_offset"])
                for row in changed
                for old in row["replaced_deletes"] or ()
            ),
            matched=_matched(rows),
            files=_unwrapped(outcomes.filter(is_file)["file"]),
        )


def _total(rows: list[dict[str, Any]], name: str) -> int:
    return sum(row[name] or 0 for row in rows)


def _matched(rows: list[dict[str, Any]]) -> dict[int, bytes]:
    """Return for each part without an owner which rows were matched by any task."""
    found: dict[int, BitMap] = {}
    for row in rows:
        if row["matched"] is not None:
            bitmap = BitMap.deserialize(row["matched"])
            found[row["part"]] = found.get(row["part"], BitMap()) | bitmap
    return {part: bytes(bitmap.serialize()) for part, bitmap in found.items()}


def _unwrapped(structs: pa.ChunkedArray) -> pa.Table:
    batches = [
        pa.RecordBatch.from_arrays(chunk.flatten(), schema=WRITTEN_FILES)
        for chunk in structs.chunks
        if len(chunk)
    ]
    return pa.Table.from_batches(batches, WRITTEN_FILES)


def _written(files: pa.Table) -> int:
    """Return the bytes of files; vectors that share one Puffin file count it once."""
    sizes = files.select(["location", "file_size_in_bytes"]).group_by("location", use_threads=False)
    found = sizes.aggregate([("file_size_in_bytes", "max")])["file_size_in_bytes_max"]
    return int(pc.sum(found).as_py() or 0)


def _size(staged: pa.Table) -> int:
    return int(pc.sum(staged["size_in_bytes"]).as_py() or 0)


def _operation(data: pa.Table, touched: frozenset[str] | set[str]) -> Operation:
    if not touched:
        return Operation.APPEND
    return Operation.OVERWRITE if data.num_rows else Operation.DELETE


def _inside(plan: FilePlan) -> dict[str, int]:
    """Return the clean files all of whose rows match by metadata alone, with their rows."""
    found: dict[str, int] = {}
    for spec_id, files in plan.data.items():
        view: TableView = plan.view
        inside = must_match(files, plan.predicate, view.specs[spec_id], view.schema)
        whole = files.filter(pc.and_(inside, pa.array(plan.clean(spec_id))))
        rows = whole["record_count"].to_pylist()
        found |= dict(zip(whole["location"].to_pylist(), rows, strict=True))
    return found


def _without(plan: FilePlan, removed: Mapping[str, int]) -> FilePlan:
    if not removed:
        return plan
    gone = pa.array(sorted(removed), pa.string())
    data = {
        spec_id: files.filter(pc.invert(pc.is_in(files["location"], gone)))
        for spec_id, files in plan.data.items()
    }
    return replace(plan, data=data)
