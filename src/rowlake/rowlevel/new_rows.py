"""Whether rows that others added concern an operation: looked up row by row before it conflicts.

Bounds and partitions say which new data files *may* hold a row that the operation would have
matched. Where these are few, their key columns are matched as the operation matches its own files,
so that writers of different rows land side by side however their keys interleave.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from rowlake.engine.local import MAX_BYTES, MAX_FILES
from rowlake.plan.files import plan_files
from rowlake.rowlevel.matches import changes_of
from rowlake.rowlevel.planning import change_template, whole_files_of
from rowlake.rowlevel.source import SourceRows
from rowlake.rowlevel.tasks import TaskLayout, change_tasks, placed_files
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    import pyarrow as pa

    from rowlake.model.predicate import Predicate
    from rowlake.model.schema import Schema
    from rowlake.model.view import TableView
    from rowlake.rowlevel.operation import RowChange
    from rowlake.rowlevel.task import ChangeTask
    from rowlake.rowlevel.tasks import Placed
    from rowlake.verbs.write import WriteOptions


@dataclass(frozen=True)
class NewRows:
    """The rows that an operation would have matched, had they been there; see `RowCheck`.

    `predicate` is the operation's conflict detection filter, `schema` what it is bound to.
    """

    change: RowChange
    options: WriteOptions
    predicate: Predicate
    schema: Schema

    def are_in(self, view: TableView, files: pa.Table) -> bool:
        """Return whether data files hold such a row; True also where that is too much to read."""
        size_in_bytes = pc.sum(files["file_size_in_bytes"]).as_py() or 0
        same_schema = view.schema.arrow.equals(self.schema.arrow, check_metadata=True)
        if files.num_rows > MAX_FILES or size_in_bytes > MAX_BYTES or not same_schema:
            return True
        template = replace(
            change_template(self.change, view, self.options),
            checks_cardinality=False,
            rejects_matches=False,
            skips_unchanged=False,
        )
        placed = self._placed(view, files["location"].combine_chunks(), template)
        if placed is None:
            return True
        tasks = change_tasks(template, placed, self.change.staged, slots=1, inserts=False)
        return any(_has_match(task) for task in tasks)

    def _placed(
        self, view: TableView, locations: pa.Array, template: ChangeTask
    ) -> list[Placed] | None:
        """Return the files as they are at the head; None where rows of theirs were moved on."""
        storage = Storage(view.io_properties)
        plan = plan_files(whole_files_of(view), self.predicate, storage, whole_files=True)
        data = {
            spec_id: files.filter(pc.is_in(files["location"], locations))
            for spec_id, files in plan.data.items()
        }
        if sum(files.num_rows for files in data.values()) < len(locations):
            return None
        found = placed_files(replace(plan, data=data), TaskLayout(self.change.staged), template)
        needs_source = self.change.staged is not None and not self.change.touches_unmatched
        return [one for one in found if one.parts or not needs_source]


def _has_match(task: ChangeTask) -> bool:
    source = SourceRows(task, Storage(task.context.io_properties))
    return any(
        len(changes_of(task, file, parts, source)) or source.has_matches
        for file, parts in zip(task.files, task.parts, strict=True)
    )
