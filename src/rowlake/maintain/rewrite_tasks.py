"""Groups of files become tasks, and what tasks answer becomes the parts of a change."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from rowlake.iceberg.deletion_vector import positions_of
from rowlake.maintain.rewrite_kernel import RewriteTask
from rowlake.model.files import WRITTEN_FILES
from rowlake.model.rewrite import Output, Rewritten, RewrittenPart
from rowlake.verbs.read import scan_context
from rowlake.write.context import write_context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.maintain.rewrite_plan import FileGroup, RewriteOptions
    from rowlake.model.partition import SortField
    from rowlake.model.view import TableView
    from rowlake.write.context import WriteContext

_TARGET = "write.target-file-size-bytes"


@dataclass(frozen=True)
class Layout:
    """How the rows of new files are ordered: as they came, by sort keys, or along a Z-curve.

    `zorder` has the ids of columns.
    """

    sort: tuple[SortField, ...] = ()
    sort_order_id: int = 0
    zorder: tuple[int, ...] = ()

    @property
    def keeps_order(self) -> bool:
        """True where rows stay in the order in which they are read."""
        return not self.sort and not self.zorder


@dataclass(frozen=True)
class Done:
    """What tasks wrote, and in place of what."""

    files: pa.Table
    parts: tuple[RewrittenPart, ...]


def rewrite_tasks(
    groups: Sequence[FileGroup], view: TableView, options: RewriteOptions, layout: Layout
) -> list[RewriteTask]:
    """Return the tasks of some groups: one for each output file, or one for each sorted group."""
    write = _write_context(view, options, layout)
    # All columns, and on v3 the lineage of rows.
    context = replace(scan_context(view), projection=write.schema)
    tasks: list[RewriteTask] = []
    for group in groups:
        count = options.sizes.output_files(group.live_bytes) if layout.keeps_order else 1
        for places in _neighbours(group, count):
            tasks.append(
                RewriteTask(
                    number=len(tasks),
                    context=context,
                    write=replace(write, task_number=len(tasks)),
                    files=tuple(group.files[place] for place in places),
                    partitions=tuple(group.partitions[place] for place in places),
                )
            )
    return tasks


def _write_context(view: TableView, options: RewriteOptions, layout: Layout) -> WriteContext:
    context = write_context(
        view,
        operation_id=str(uuid.uuid4()),
        spec_id=options.output_spec_id,
        row_lineage=view.format_version >= 3,
        properties={_TARGET: str(options.sizes.write_limit)},
    )
    return replace(context, sort=layout.sort, sort_order_id=layout.sort_order_id)


def _neighbours(group: FileGroup, count: int) -> list[list[int]]:
    """Return runs of files, of about equal bytes each."""
    sizes = np.array([file.file_size_in_bytes for file in group.files], float)
    middles = np.cumsum(sizes) - sizes / 2
    numbers = (middles * (count / max(sizes.sum(), 1))).astype(np.int64)
    runs = (np.flatnonzero(numbers == number).tolist() for number in range(count))
    return [run for run in runs if run]


def done_of(answers: pa.Table, tasks: Sequence[RewriteTask]) -> Done:
    """Put the answers of tasks together; rows are left where they belong to no task."""
    is_file = pc.is_valid(answers["file"])
    sources = answers.filter(pc.invert(is_file)).select(["task", "source", "dropped"]).to_pylist()
    dropped = {
        (row["task"], row["source"]): positions_of(BitMap64.deserialize(row["dropped"]))
        for row in sources
        if row["dropped"] is not None
    }
    written = answers.filter(is_file).sort_by([("task", "ascending"), ("place", "ascending")])
    outputs: dict[int, list[Output]] = {task.number: [] for task in tasks}
    files = _unwrapped(written["file"])
    for number, row in zip(
        written["task"].to_pylist(),
        files.select(["location", "spec_id", "partition", "record_count"]).to_pylist(),
        strict=True,
    ):
        outputs[number].append(Output(**{**row, "partition": tuple(row["partition"])}))
    parts = tuple(_part(task, dropped, outputs[task.number]) for task in tasks)
    return Done(files, parts)


def _part(
    task: RewriteTask,
    dropped: dict[tuple[int, str], np.ndarray[tuple[int], np.dtype[np.int64]]],
    outputs: list[Output],
) -> RewrittenPart:
    none = np.empty(0, np.int64)
    sources = tuple(
        Rewritten(
            file.location,
            file.spec_id,
            partition,
            file.record_count,
            dropped.get((task.number, file.location), none),
        )
        for file, partition in zip(task.files, task.partitions, strict=True)
    )
    of_one_partition = len({(output.spec_id, output.partition) for output in outputs}) <= 1
    return RewrittenPart(sources, tuple(outputs), of_one_partition and not task.write.sort)


def _unwrapped(files: pa.ChunkedArray) -> pa.Table:
    batches = [
        pa.RecordBatch.from_arrays(chunk.flatten(), schema=WRITTEN_FILES) for chunk in files.chunks
    ]
    return pa.Table.from_batches(batches, WRITTEN_FILES)
