"""Where rows of sources are in files that hold them in another order, by their row ids.

Format version 3 only: a rewrite keeps the ids of rows, so the ids of rows that others deleted
meanwhile, looked for in the new files, say which rows to delete there. Key columns are not
read; a look costs the id column of the new files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowlake.errors import RowlakeError
from rowlake.maintain.compact.rewrite_kernel import POSITION
from rowlake.model.schema import FIELD_ID, Schema
from rowlake.model.task import ROW_ID_COLUMN, ROW_ID_COLUMN_ID, FileTask, ScanTask
from rowlake.scan.kernel import picked_rows, scan_kernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from rowlake.engine.spark import Engine
    from rowlake.model.rewrite import Rewritten, RewrittenPart
    from rowlake.model.task import ScanContext

    Positions = NDArray[np.int64]

ROW_ID = pa.field(ROW_ID_COLUMN, pa.int64(), metadata={FIELD_ID: str(ROW_ID_COLUMN_ID).encode()})
LOCATED = pa.schema([pa.field("location", pa.string()), pa.field("position", pa.int64())])


@dataclass(frozen=True)
class LocateTask:
    """New files in which rows with these ids, sorted, are looked for."""

    context: ScanContext
    files: tuple[FileTask, ...]
    ids: Positions


def locate_kernel(task: LocateTask) -> Iterator[pa.RecordBatch]:
    """Yield the positions of the rows that have one of the ids."""
    for file in task.files:
        for batch in scan_kernel(ScanTask(task.context, (file,))):
            ids = np.asarray(batch.column(0).fill_null(-1))
            positions = batch.column(1).filter(pa.array(np.isin(ids, task.ids)))
            location = pa.repeat(pa.scalar(file.location), len(positions))
            yield pa.RecordBatch.from_arrays([location, positions], schema=LOCATED)


@dataclass(frozen=True)
class ByRowId:
    """Looks for rows of a compaction's sources in its outputs; both are given by location."""

    engine: Engine
    context: ScanContext
    sources: Mapping[str, FileTask]
    outputs: Mapping[str, FileTask]

    def __call__(
        self, part: RewrittenPart, rows: Mapping[str, Positions | None]
    ) -> dict[str, Positions] | None:
        """Return the places of rows in the outputs of a part; None where they cannot be told.

        None for the positions stands for all rows of a source; rows left out are nowhere.
        """
        wanted = [source for source in part.sources if source.location in rows]
        try:
            ids = np.concatenate([self._ids(each, rows[each.location]) for each in wanted])
            if (ids < 0).any():  # rows from before the table had ids
                return None
            found = self._located(part, np.sort(ids))
        except RowlakeError:  # a source may be gone from storage by now
            return None
        return found if sum(map(len, found.values())) == len(ids) else None

    def _ids(self, source: Rewritten, positions: Positions | None) -> Positions:
        every = np.arange(source.record_count) if positions is None else positions
        kept = np.setdiff1d(every, source.dropped)
        file = replace(self.sources[source.location], deletes=())
        context = replace(self.context, projection=Schema(pa.schema([ROW_ID])))
        batches = picked_rows(context, file, kept) if len(kept) else []
        ids = [np.asarray(batch.column(0).fill_null(-1)) for batch in batches]
        return np.concatenate([np.empty(0, np.int64), *ids])

    def _located(self, part: RewrittenPart, ids: Positions) -> dict[str, Positions]:
        context = replace(self.context, projection=Schema(pa.schema([ROW_ID, POSITION])))
        files = [self.outputs[output.location] for output in part.outputs]
        found = self.engine.run(
            locate_kernel,
            [LocateTask(context, some, ids) for some in _dealt(files, self.engine.parallelism)],
            LOCATED,
            size_in_bytes=sum(file.record_count for file in files) * 8,
            label="looking for rows that others deleted",
        )
        locations, positions = found["location"].to_numpy(), found["position"].to_numpy()
        return {
            location: np.sort(positions[locations == location])
            for location in np.unique(locations).tolist()
        }


def _dealt(files: list[FileTask], tasks: int) -> list[tuple[FileTask, ...]]:
    """Return the files of each of a few tasks: the ids travel once with each."""
    return [tuple(files[start::tasks]) for start in range(min(tasks, len(files)))]


def by_row_id(
    engine: Engine, context: ScanContext, sources: Mapping[str, FileTask], files: pa.Table
) -> ByRowId:
    """Return a look for rows in written files (`WRITTEN_FILES`)."""
    columns = ["location", "file_format", "file_size_in_bytes", "record_count", "spec_id"]
    outputs = {row["location"]: _whole(**row) for row in files.select(columns).to_pylist()}
    return ByRowId(engine, context, sources, outputs)


def _whole(**known: Any) -> FileTask:
    """Return a new file to be read; a row whose id it does not hold has one below zero."""
    rows, size = known["record_count"], known["file_size_in_bytes"]
    return FileTask(**known, start=0, length=size, partition={}, first_row_id=-rows)
