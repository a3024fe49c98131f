"""Groups of files become tasks, and what tasks answer becomes the parts of a change."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from rowlake.codecs.deletion_vector import positions_of
from rowlake.maintain.compact.rewrite_kernel import RewriteTask
from rowlake.maintain.compact.row_order import RowOrder
from rowlake.model.files import WRITTEN_FILES
from rowlake.model.partition import SortField
from rowlake.model.rewrite import Output, Rewritten, RewrittenPart
from rowlake.model.schema import children
from rowlake.verbs.read import scan_context
from rowlake.write.context import write_context

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from rowlake.maintain.compact.rewrite_plan import FileGroup, RewriteOptions
    from rowlake.model.schema import Schema
    from rowlake.model.task import ScanContext
    from rowlake.model.view import TableView
    from rowlake.write.context import WriteContext

ONE_TASK_BYTES = 384 << 20
ALONE_BYTES = 48 << 20
_EXPANSION = 4  # bytes in memory per byte in files: a guess for what is compressed
_TEXT_WIDTH = 24


@dataclass(frozen=True)
class RewriteLayout:
    """How the rows of new files are ordered: as they came, by sort keys, or along a Z-curve.

    `zorder` has the ids of columns.
    """

    sort: tuple[SortField, ...] = ()
    sort_order_id: int = 0
    zorder: tuple[int, ...] = ()

    @property
    def cluster_order_id(self) -> int:
        """The order of clustered files; 0 where rows are not clustered by the table's columns."""
        return self.sort_order_id if self.zorder else 0

    @property
    def keeps_order(self) -> bool:
        """True where rows stay in the order in which they are read."""
        return not self.sort and not self.zorder


@dataclass(frozen=True)
class Done:
    """What tasks wrote, and in place of what."""

    files: pa.Table
    parts: tuple[RewrittenPart, ...]


@dataclass(frozen=True)
class Making:
    """How the tasks of one compaction are made: what is read, how it is ordered and written."""

    context: ScanContext
    write: WriteContext
    options: RewriteOptions
    layout: RewriteLayout

    def order_of(self, group: FileGroup) -> RowOrder | None:
        """Return the order of the rows of a group; by partition first where they change it."""
        if self.layout.keeps_order and not self._is_dealt_out(group):
            return None
        clusters = self._clusters if self._moves(group) else ()
        return RowOrder(self.write.schema, clusters, self.layout.sort, self.layout.zorder)

    def _is_dealt_out(self, group: FileGroup) -> bool:
        """Return whether rows of several tasks go into the same partitions."""
        return self._moves(group) and bool(self._clusters) and len(self._runs(group)) > 1

    @cached_property
    def _clusters(self) -> tuple[SortField, ...]:
        return tuple(
            SortField(field.source_id, field.transform)
            for field in self.write.spec.fields
            if field.transform != "void"
        )

    def _moves(self, group: FileGroup) -> bool:
        """Return whether rows move from older specs into partitions known only by reading them."""
        return any(file.spec_id != self.write.spec.spec_id for file in group.files)

    def files_of(self, group: FileGroup) -> int:
        """Return into how many files a group goes, unless it goes into other partitions.

        Never more than there are rows, whatever sizes metadata says.
        """
        if not self.layout.keeps_order:
            rows = sum(file.record_count for file in group.files)
            return min(self.options.sizes.output_files(group.live_bytes), max(rows, 1))
        return sum(files for _, files in self._runs(group))

    def _runs(self, group: FileGroup) -> list[tuple[list[int], int]]:
        """Return runs of files, each with the files that come of it, all of them of a fine size."""
        sizes = self.options.sizes
        runs: list[tuple[list[int], float]] = []
        for places in neighbours(group, sizes.output_files(group.live_bytes)):
            live = group.live_share * sum(group.files[n].file_size_in_bytes for n in places)
            if runs and min(live, runs[-1][1]) < sizes.least:
                before, held = runs.pop()
                runs.append((before + places, held + live))
            else:
                runs.append((places, live))
        return [(places, sizes.output_files(live)) for places, live in runs]

    def memory_of(self, group: FileGroup) -> float:
        """Return about how many bytes the rows of a group take in memory."""
        rows = sum(file.record_count for file in group.files)
        return max(group.live_bytes * _EXPANSION, rows * row_width(self.write.schema))

    def is_large(self, group: FileGroup, *, is_alone: bool = False) -> bool:
        """Return whether a group is ordered and has more rows than one task should hold in memory.

        One that is alone, so that other tasks would have nothing to do, is so much sooner; one
        that is ordered by partition alone is so from two tasks on.
        """
        if self.layout.keeps_order:
            return self._is_dealt_out(group)
        most = min(ALONE_BYTES, ONE_TASK_BYTES) if is_alone else ONE_TASK_BYTES
        return self.memory_of(group) > most

    def tasks(self, groups: Sequence[FileGroup]) -> list[RewriteTask]:
        """Return the tasks of some groups: one for each run of files, or for each ordered group."""
        tasks: list[RewriteTask] = []
        for group in groups:
            order = self.order_of(group)
            runs = self._runs(group)
            if order is not None:
                runs = [(list(range(len(group.files))), self.files_of(group))]
            for places, files in runs:
                task = self.task(group, places, len(tasks))
                parts = 1 if order is None and self._moves(group) else files
                tasks.append(replace(task, order=order, parts=parts))
        return tasks

    def task(self, group: FileGroup, places: list[int], number: int) -> RewriteTask:
        """Return the task of some files of a group."""
        files = tuple(group.files[place] for place in places)
        sizes = self.options.sizes
        # Files are cut by rows, so only one that came out far larger than foreseen is cut again;
        # where rows go into other partitions the size alone says where to cut.
        cut_by_size = self.layout.keeps_order and self._moves(group)
        return RewriteTask(
            number=number,
            context=self.context,
            write=replace(
                self.write,
                task_number=number,
                target_file_size_in_bytes=sizes.write_limit if cut_by_size else sizes.most,
            ),
            files=files,
            partitions=tuple(group.partitions[place] for place in places),
            rows=round(group.live_share * sum(file.record_count for file in files)),
        )


def making_of(view: TableView, options: RewriteOptions, layout: RewriteLayout) -> Making:
    """Return how a compaction of a table makes its tasks."""
    write = replace(
        write_context(
            view,
            operation_id=str(uuid.uuid4()),
            spec_id=options.output_spec_id,
            fanout=None if layout.keeps_order else False,
            row_lineage=view.can.row_ids,
        ),
        sort_order_id=layout.sort_order_id,
    )
    # All columns, and on v3 the lineage of rows.
    context = replace(scan_context(view), projection=write.schema)
    return Making(context, write, options, layout)


def row_width(schema: Schema) -> int:
    """Return about how many bytes a row takes in memory; texts count as short ones."""
    leaves = [found.type for _, found in schema.walk() if not children(found.type)]
    return sum(_width(kind) for kind in leaves)


def _width(kind: pa.DataType) -> int:
    try:
        return max(int(kind.bit_width) // 8, 1)
    except ValueError:
        return _TEXT_WIDTH


def neighbours(group: FileGroup, count: int) -> list[list[int]]:
    """Return runs of files, of about equal bytes each."""
    sizes = np.array([file.file_size_in_bytes for file in group.files], float)
    middles = np.cumsum(sizes) - sizes / 2
    numbers = (middles * (count / max(sizes.sum(), 1))).astype(np.int64)
    # Not for each of `count`: sizes in manifests may be false, and there are as many runs as files.
    return [np.flatnonzero(numbers == number).tolist() for number in np.unique(numbers)]


def done_of(answers: pa.Table, tasks: Sequence[RewriteTask]) -> Done:
    """Put the answers of tasks together; rows are left where they belong to no task."""
    is_file = pc.is_valid(answers["file"])
    sources = answers.filter(pc.invert(is_file)).select(["task", "source", "dropped"])
    numbers = sources.column("task").to_pylist()
    dropped = dict(
        zip(
            zip(numbers, sources["source"].to_pylist(), strict=True),
            sources["dropped"].to_pylist(),
            strict=True,
        )
    )
    files, outputs = outputs_of(answers.filter(is_file))
    parts = tuple(
        part_of(
            task,
            {file.location: dropped.get((task.number, file.location)) for file in task.files},
            outputs.get(task.number, []),
        )
        for task in tasks
    )
    return Done(files, parts)


def outputs_of(answers: pa.Table) -> tuple[pa.Table, dict[int, list[Output]]]:
    """Return the files that tasks wrote: as `WRITTEN_FILES`, and by task in their order."""
    written = answers.sort_by([("task", "ascending"), ("place", "ascending")])
    files = _unwrapped(written["file"])
    outputs: dict[int, list[Output]] = {}
    for number, row in zip(
        written["task"].to_pylist(),
        files.select(["location", "spec_id", "partition", "record_count"]).to_pylist(),
        strict=True,
    ):
        output = Output(**{**row, "partition": tuple(row["partition"])})
        outputs.setdefault(number, []).append(output)
    return files, outputs


def part_of(
    task: RewriteTask, dropped: Mapping[str, bytes | None], outputs: Sequence[Output]
) -> RewrittenPart:
    """Return what was made of a task's files; `dropped`: serialised bitmaps by location."""
    sources = tuple(
        Rewritten(
            file.location,
            file.spec_id,
            partition,
            file.record_count,
            _positions(dropped.get(file.location)),
        )
        for file, partition in zip(task.files, task.partitions, strict=True)
    )
    of_one_partition = len({(output.spec_id, output.partition) for output in outputs}) <= 1
    return RewrittenPart(sources, tuple(outputs), of_one_partition and task.order is None)


def _positions(bitmap: bytes | None) -> NDArray[np.int64]:
    if bitmap is None:
        return np.empty(0, np.int64)
    return positions_of(BitMap64.deserialize(bitmap))


def _unwrapped(files: pa.ChunkedArray) -> pa.Table:
    batches = [
        pa.RecordBatch.from_arrays(chunk.flatten(), schema=WRITTEN_FILES) for chunk in files.chunks
    ]
    return pa.Table.from_batches(batches, WRITTEN_FILES)
