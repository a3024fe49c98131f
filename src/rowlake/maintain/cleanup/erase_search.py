"""Which files of a table hold rows of a predicate, in any snapshot, deleted rows included.

Comes in: a table handle and an exact predicate. Goes out: the locations of data files and equality
delete files that physically hold such a row. Metadata leaves out most files; the rest are read, the
predicate's columns alone, and no delete hides a row: what a deletion vector deletes is still on
disk.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.files import Content
from rowlake.model.predicate import leaves
from rowlake.model.task import FileTask, ScanTask
from rowlake.plan.delete_index import DeleteIndex
from rowlake.plan.files import FILE_COLUMNS, METRICS_COLUMNS, NAN_COLUMN, FilePlan
from rowlake.plan.tasks import OPEN_FILE_BYTES, SPLIT_BYTES, pack, task_count, whole_files
from rowlake.prune.bind import bind
from rowlake.prune.match import matching_files
from rowlake.scan.kernel import scan_kernel
from rowlake.verbs.read import scan_context

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.task import ScanContext
    from rowlake.model.view import TableView

_FACTS = ("location", "file_format", "file_size_in_bytes", "record_count")
HOLDING = pa.schema([pa.field("location", pa.string()), pa.field("rows", pa.int64())])
_COLUMNS = (*FILE_COLUMNS, "equality_ids", *METRICS_COLUMNS, NAN_COLUMN)


@dataclass(frozen=True)
class CountTask:
    """Files to look through for rows of the context's predicate."""

    context: ScanContext
    files: tuple[FileTask, ...]


@dataclass(frozen=True)
class Held:
    """What was found: rows by file, and how many files were looked at and how many were read."""

    data_files: dict[str, int]
    delete_files: dict[str, int]
    files_considered: int
    files_read: int

    @property
    def locations(self) -> frozenset[str]:
        """All files that hold such rows."""
        return frozenset(self.data_files) | frozenset(self.delete_files)


def files_holding(handle: TableHandle, engine: Engine, predicate: Predicate) -> Held:
    """Look through all files that any snapshot reaches."""
    view = handle.view()
    bound = bind(predicate, view.schema)
    entries = handle.format.file_history(handle, runner=engine).files(_COLUMNS)
    data, deletes = _data_files(entries, bound, view), _delete_files(entries, bound)
    rows = _counted(engine, view, bound, [*data, *deletes])
    of_data = {file.location for file in data}
    return Held(
        {at: count for at, count in rows.items() if at in of_data},
        {at: count for at, count in rows.items() if at not in of_data},
        sum(table.num_rows for table in entries.values()),
        len(data) + len(deletes),
    )


def _data_files(
    entries: Mapping[int, pa.Table], predicate: Predicate, view: TableView
) -> list[FileTask]:
    """Return the data files that may hold such a row, by metadata; no delete applies to them."""
    found: dict[int, pa.Table] = {}
    for spec_id, table in entries.items():
        data = table.filter(pc.equal(table["content"], int(Content.DATA)))
        found[spec_id] = matching_files(data, predicate, view.specs[spec_id], view.schema)
    plan = FilePlan(view, predicate, found, DeleteIndex({}, view.specs, view.schema))
    return [file for spec_id in found for file in whole_files(plan, spec_id)]


def _delete_files(entries: Mapping[int, pa.Table], predicate: Predicate) -> list[FileTask]:
    """Return the equality delete files that have all columns of the predicate."""
    asked = {leaf.field_id for leaf in leaves(predicate)}
    found = []
    for spec_id, table in entries.items():
        deletes = table.filter(pc.equal(table["content"], int(Content.EQUALITY_DELETES)))
        for row in deletes.select([*_FACTS, "equality_ids"]).to_pylist():
            if asked <= set(row.pop("equality_ids") or ()):
                size = row["file_size_in_bytes"]
                found.append(FileTask(**row, start=0, length=size, spec_id=spec_id, partition={}))
    return found


def _counted(
    engine: Engine, view: TableView, predicate: Predicate, files: list[FileTask]
) -> dict[str, int]:
    """Return how many such rows each file holds; only those that hold any."""
    columns = {view.schema.paths[leaf.field_id or 0][0] for leaf in leaves(predicate)}
    context = replace(scan_context(view, sorted(columns)), predicate=predicate, exact=True)
    weights = np.array([max(file.file_size_in_bytes, OPEN_FILE_BYTES) for file in files], float)
    count = task_count(float(weights.sum()), SPLIT_BYTES, engine.parallelism)
    tasks = [
        CountTask(context, tuple(files[place] for place in places.tolist()))
        for places in pack(weights, count)
    ]
    answers = engine.run(
        count_kernel,
        tasks,
        HOLDING,
        size_in_bytes=sum(file.file_size_in_bytes for file in files),
        label=f"searching {view.name}",
    )
    return dict(zip(answers["location"].to_pylist(), answers["rows"].to_pylist(), strict=True))


def count_kernel(task: CountTask) -> Iterator[pa.RecordBatch]:
    """Count the rows of each file for which the predicate is TRUE; of files that hold any."""
    for file in task.files:
        found = scan_kernel(ScanTask(task.context, (file,)))
        rows = sum(batch.num_rows for batch in found)
        if rows:
            yield pa.RecordBatch.from_pylist([{"location": file.location, "rows": rows}], HOLDING)
