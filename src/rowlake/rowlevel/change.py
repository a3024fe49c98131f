"""Row-level operations run: plan, match and write in tasks, commit.

Comes in: a table handle and a `RowChange`. Goes out: the handle after the commit and a `Result`.
Nothing to change: no commit, unless it is a batch of a stream.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.commit.outcome import Phases, commit_or_raise
from rowlake.commit.phases import Phase, reached
from rowlake.commit.rerun import rerun_on_conflict
from rowlake.errors import InvalidStatementError, RowlakeError
from rowlake.model.change import Change, Isolation, Operation, Requirements
from rowlake.model.predicate import TRUE
from rowlake.model.result import Result
from rowlake.rowlevel.kernel import change_kernel
from rowlake.rowlevel.made_columns import validate_made
from rowlake.rowlevel.new_rows import NewRows
from rowlake.rowlevel.outcomes import Done
from rowlake.rowlevel.planning import SETTINGS, Planned, plan_change
from rowlake.rowlevel.strategy import Mode
from rowlake.rowlevel.task import OUTCOMES
from rowlake.rowlevel.tasks import change_tasks, insert_tasks
from rowlake.storage.files import Storage
from rowlake.verbs.identity_columns import moved_marks
from rowlake.verbs.key_index import build_indexes
from rowlake.verbs.write import skipped_result, view_for_write
from rowlake.write.kernel import remove_attempt, remove_written

if TYPE_CHECKING:
    from rowlake.engine.spark import Engine, Kernel
    from rowlake.model.change import RowCheck
    from rowlake.model.handle import TableHandle
    from rowlake.model.view import TableView
    from rowlake.rowlevel.key_lookup import Fill
    from rowlake.rowlevel.operation import RowChange
    from rowlake.rowlevel.task import ChangeTask
    from rowlake.rowlevel.tasks import Placed
    from rowlake.verbs.write import WriteOptions
    from rowlake.write.key_index import IndexKeys


def change_rows(
    handle: TableHandle, engine: Engine, change: RowChange, options: WriteOptions
) -> tuple[TableHandle, Result]:
    """Run an operation; replanned with the same staged source when another commit forbids it.

    Not where rows were found by position, or values were read from the table (or are new ones of
    its identity columns): then it is up to who found or made them to do that again.
    """
    phases, runs = Phases(), []

    def run(found: TableHandle) -> tuple[TableHandle, Result]:
        runs.append(found)
        landed, result = _Run(found, engine, change, options, phases).run()
        return landed, replace(result, retries=result.retries + len(runs) - 1)

    is_bound = change.matching.position is not None or bool(change.identities)
    if is_bound or change.reads_target:
        return run(handle)
    return rerun_on_conflict(handle, run, is_bound=True)


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
        validate_made(change, self.view)
        self.storage = Storage(self.view.io_properties)
        self.phases = phases or Phases()

    def run(self) -> tuple[TableHandle, Result]:
        with self.phases.phase("plan"):
            planned = self.planned(fill=self._fill_index)
        reached(Phase.PLANNED, self.handle)
        with self.phases.phase("write"):
            done = self._with_needed_images(self._done(planned))
        if not planned.removed and not done.changes_anything and not self._marks_table:
            return self.handle, self._result(planned, done)
        try:
            change = self._commit_change(planned, done)
        except BaseException:
            remove_written(done.files, self.storage)
            raise
        with self.phases.phase("commit"):
            landed, committed = commit_or_raise(self.handle, change, self.storage, self.change.verb)
        if committed.skipped:
            return landed, skipped_result(self.change.verb, self.phases)
        result = replace(
            self._result(planned, done),
            snapshot_id=committed.snapshot_id,
            delete_files_added=committed.change.added_deletes.num_rows,
            delete_files_removed=len(committed.change.removed_deletes),
            retries=committed.retries,
        )
        return landed, result

    @property
    def _marks_table(self) -> bool:
        """True where the commit is needed although no row changes."""
        return self.options.app_batch is not None or bool(self.change.table_properties)

    def planned(self, fill: Fill | None = None) -> Planned:
        """Return what to look at."""
        return plan_change(
            self.change, self.view, self.engine, self.options, self.storage, fill=fill
        )

    def _fill_index(self, placed: list[Placed], keys: IndexKeys) -> None:
        """Write the indexes that other engines' files lack: that takes as long as to scan them."""
        files = [one.file for one in placed]
        build_indexes(self.handle, self.engine, files, keys, self.options.progress)

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
        """Return what the tasks may read: data files, or some rows of them, and all staged rows."""
        staged = self.change.staged
        held = 0 if staged is None else _size(staged.rows)
        if planned.template.mode is Mode.COPY_ON_WRITE:
            return held + sum(one.file.file_size_in_bytes for one in planned.placed)
        return held + sum(one.file.bytes_to_read for one in planned.placed)

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

    def _with_needed_images(self, done: Done) -> Done:
        """Remove images that nobody needs: files that only came, or only went, say as much."""
        if not done.images.num_rows or (done.data.num_rows and done.changed):
            return done
        remove_written(done.images, self.storage)
        return done.without_images()

    # --- committing

    def _commit_change(self, planned: Planned, done: Done) -> Change:
        view, options = self.view, self.options
        data, deletes = done.data, done.deletes
        touched = done.replaced | done.with_deletes | set(planned.removed)
        is_serializable = self._isolation() is Isolation.SERIALIZABLE
        reads_all = self.change.reads_everywhere and is_serializable
        return Change(
            operation=_operation(data, touched),
            added_data=data,
            added_deletes=deletes,
            removed_data=done.replaced | set(planned.removed),
            removed_deletes=done.replaced_deletes,
            requirements=Requirements(
                starting_snapshot_id=view.snapshot_id,
                conflict_detection_filter=TRUE if reads_all else planned.conflict_filter,
                # A key that another writer inserted too must not be there twice.
                no_new_data=self.change.has_unique_keys or is_serializable,
                no_new_deletes=reads_all,
                no_new_deletes_for=touched,
                files_exist=touched,
                # Deleted meanwhile, they no longer keep source rows from being inserted.
                no_rows_lost_from=done.kept - done.replaced if is_serializable else frozenset(),
                row_check=None if reads_all else self._row_check(planned),
            ),
            branch=options.branch,
            stage_only=options.stage_only,
            properties={**self._counted(planned, done), **options.properties},
            app_batch=options.app_batch,
            table_properties=self.change.table_properties,
            images=done.images,
            moved_marks=moved_marks(data, self.change.identities, view) if done.inserted else (),
        )

    def _row_check(self, planned: Planned) -> RowCheck | None:
        """Return what looks at new rows; rows that Spark found cannot be matched by tasks."""
        if self.change.matching.position is not None:
            return None
        return NewRows(self.change, self.options, planned.conflict_filter, self.view.schema)

    def _isolation(self) -> Isolation:
        if self.options.isolation:
            return self.options.isolation
        setting = f"write.{SETTINGS[self.change.verb]}.isolation-level"
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
            bytes_written=done.bytes_written,
            bytes_read=done.bytes_read + planned.bytes_read,
            files_considered=planned.files.files_considered,
            files_pruned=planned.files_pruned,
            files_matched=len(planned.removed) + len(done.replaced) + len(done.with_deletes),
            seconds=self.phases.total,
            phases=self.phases.seconds,
        )


def _size(staged: pa.Table) -> int:
    return int(pc.sum(staged["size_in_bytes"]).as_py() or 0)


def _operation(data: pa.Table, touched: frozenset[str] | set[str]) -> Operation:
    if not touched:
        return Operation.APPEND
    return Operation.OVERWRITE if data.num_rows else Operation.DELETE
