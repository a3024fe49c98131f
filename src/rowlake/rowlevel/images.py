"""The images of the rows that a task changes, for tables that keep them.

Old images are read from the file whose rows change, whatever becomes of the file; new ones are the
rows that are written. A task that keeps none does nothing here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowlake.model.feed import DELETE, INSERT, POSTIMAGE, PREIMAGE
from rowlake.model.files import WRITTEN_FILES
from rowlake.model.merge import Action
from rowlake.model.schema import Schema
from rowlake.rowlevel.matches import POSITION
from rowlake.scan.kernel import picked_rows
from rowlake.write.images import ImageWriter

if TYPE_CHECKING:
    from rowlake.model.task import FileTask
    from rowlake.rowlevel.matches import Changes
    from rowlake.rowlevel.task import ChangeTask


class Images:
    """The images of one task."""

    def __init__(self, task: ChangeTask) -> None:
        self._task = task
        self._writer = None if task.images is None else ImageWriter(task.images)

    def add_old(self, file: FileTask, changes: Changes) -> None:
        """Take the rows of a file as they were: deleted ones, and those that an update changes."""
        if self._writer is None:
            return
        task, columns = self._task, self._task.write.schema.arrow
        projection = Schema(columns.append(POSITION))
        context = replace(task.context, projection=projection, predicate=None, exact=False)
        deletes = np.array([clause.action is Action.DELETE for clause in task.clauses], np.bool_)
        for batch in picked_rows(context, file, changes.positions):
            places = np.searchsorted(changes.positions, np.asarray(batch.column(POSITION.name)))
            is_deleted = deletes[changes.clause[places]]
            for kind, chosen in ((DELETE, is_deleted), (PREIMAGE, ~is_deleted)):
                self._writer.add(batch.filter(pa.array(chosen)), kind)

    def add_new(self, rows: pa.RecordBatch) -> None:
        """Take new versions of rows."""
        if self._writer is not None:
            self._writer.add(rows, POSTIMAGE)

    def add_inserted(self, rows: pa.RecordBatch) -> None:
        """Take rows that are inserted."""
        if self._writer is not None:
            self._writer.add(rows, INSERT)

    def close(self) -> pa.Table:
        """Finish the files and return them."""
        return WRITTEN_FILES.empty_table() if self._writer is None else self._writer.close()

    def remove_all(self, error: BaseException) -> None:
        """Remove the files of a task that failed."""
        if self._writer is not None:
            self._writer.remove_all(error)
