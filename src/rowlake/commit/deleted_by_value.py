"""Which rows of a data file new equality deletes delete: found by reading its key columns.

Comes in: data files of a head and equality delete files that others added. Goes out: positions.
Writers by position land beside writers by value where they change different rows; without this
each new equality delete would be a conflict with every change of its partition.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.engine.local import MAX_BYTES
from rowlake.model.schema import FIELD_ID, Schema
from rowlake.model.task import POS_COLUMN, POS_COLUMN_ID, ScanContext, ScanTask
from rowlake.plan.files import plan_files
from rowlake.plan.tasks import whole_files
from rowlake.scan.kernel import scan_kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rowlake.model.files import DeleteFile
    from rowlake.model.task import FileTask
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage

    Positions = NDArray[np.int64]

_POSITIONS = Schema(
    pa.schema([pa.field(POS_COLUMN, pa.int64(), metadata={FIELD_ID: str(POS_COLUMN_ID).encode()})])
)


@dataclass
class DeletedByValue:
    """Rows of data files by equality delete file; each pair is read once, over all attempts."""

    storage: Storage
    _files: dict[str, FileTask] = field(default_factory=dict, init=False)
    _found: dict[tuple[str, str], Positions] = field(default_factory=dict, init=False)

    def among(
        self, rows: Positions, path: str, deletes: Sequence[DeleteFile], view: TableView
    ) -> Positions | None:
        """Return which rows of a data file are deleted; None where it is too large to look."""
        new = [one for one in deletes if (path, one.location) not in self._found]
        if new:
            file = self._file(path, view)
            if file is None or file.file_size_in_bytes > MAX_BYTES:
                return None
            for one in new:
                self._found[path, one.location] = self._deleted(file, one, view)
        found = [self._found[path, one.location] for one in deletes]
        return np.intersect1d(rows, np.concatenate([np.zeros(0, np.int64), *found]))

    def _file(self, path: str, view: TableView) -> FileTask | None:
        if path not in self._files:
            plan = plan_files(view, None, self.storage)
            wanted = pa.array([path])
            for spec_id, entries in plan.data.items():
                found = entries.filter(pc.is_in(entries["location"], wanted))
                if found.num_rows:
                    alone = replace(plan, data={spec_id: found})
                    (self._files[path],) = whole_files(alone, spec_id)
        return self._files.get(path)

    def _deleted(self, file: FileTask, delete: DeleteFile, view: TableView) -> Positions:
        context = ScanContext(
            table_schema=view.schema,
            projection=_POSITIONS,
            specs=view.specs,
            name_mapping=view.name_mapping,
            io_properties=view.io_properties,
        )
        task = ScanTask(context, (replace(file, deletes=(delete,)),))
        kept = [np.asarray(batch.column(0)) for batch in scan_kernel(task)]
        every = np.arange(file.record_count, dtype=np.int64)
        return np.setdiff1d(every, np.concatenate([np.zeros(0, np.int64), *kept]))
