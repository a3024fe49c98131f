"""A group that is too large for one task's memory, put in order by many tasks.

Keys are sampled, which says where each new file begins and ends; tasks split the rows of the
sources by that into staged Arrow files; then one task for each new file reads what is its own,
orders it and writes it. Every row is read twice and written twice, whatever the size of the group.
A file's rows come in several ranges, one after the other, so that a task holds one range at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.maintain.compact.rewrite_kernel import REWRITTEN
from rowlake.maintain.compact.rewrite_tasks import Done, neighbours, outputs_of, part_of
from rowlake.maintain.compact.split_kernel import (
    RANGE_BYTES,
    SPLIT,
    RangeTask,
    SampleTask,
    SplitTask,
    range_kernel,
    sample_kernel,
    split_kernel,
)
from rowlake.maintain.compact.zcurve import SAMPLE_ROWS
from rowlake.rowlevel.staged import Piece
from rowlake.rowlevel.staging import staging
from rowlake.write.context import key_schema

if TYPE_CHECKING:
    from rowlake.engine.spark import Engine
    from rowlake.maintain.compact.rewrite_plan import FileGroup
    from rowlake.maintain.compact.rewrite_tasks import Making
    from rowlake.maintain.compact.row_order import Ranges, RowOrder
    from rowlake.model.view import TableView

SAMPLED_FILES = 64
SAMPLED_AT_ONCE = 8
SPLIT_TASK_BYTES = 128 << 20


def rewrite_ordered(
    view: TableView, engine: Engine, group: FileGroup, making: Making, progress: Any = None
) -> Done:
    """Rewrite a group in order; on failure files may be left, which the caller removes."""
    return _Ordering(view, engine, group, making, progress).done()


class _Ordering:
    """One large group on its way."""

    def __init__(
        self, view: TableView, engine: Engine, group: FileGroup, making: Making, progress: Any
    ) -> None:
        order = making.order_of(group)
        assert order is not None
        self.view, self.engine, self.group, self.making = view, engine, group, making
        self.order: RowOrder = order
        every = list(range(len(group.files)))
        self.whole = replace(making.task(group, every, 0), order=order)
        self.files = making.files_of(group)
        in_memory = making.memory_of(group) / self.files
        # Half of what a task may hold, since samples miss a little; whatever sizes metadata says,
        # a range has a row.
        rows = sum(file.record_count for file in group.files)
        wanted = min(int(in_memory // (RANGE_BYTES // 2)), rows) + 1
        self.per_file = max(wanted, making.options.ranges_per_file)
        self.progress = progress

    def done(self) -> Done:
        """Sample, split, write."""
        ranges = self._ranges()
        with staging(self.engine, self.view) as place:
            split = self._split(ranges, place.folder)
            is_piece = pc.is_valid(split["part"])
            answers = self._written(split.filter(is_piece))
        noted = split.filter(pc.invert(is_piece))
        dropped = dict(zip(noted["source"].to_pylist(), noted["dropped"].to_pylist(), strict=True))
        files, outputs = outputs_of(answers)
        every = [output for number in sorted(outputs) for output in outputs[number]]
        return Done(files, (part_of(self.whole, dropped, every),))

    def _ranges(self) -> Ranges:
        keys = self.order.keys
        files = self.group.files
        places = np.linspace(0, len(files) - 1, min(SAMPLED_FILES, len(files))).astype(int)
        chosen = [files[place] for place in np.unique(places).tolist()]
        rows = sum(file.record_count for file in chosen)
        columns = key_schema(self.making.context.projection, keys.source_ids)
        context = replace(self.making.context, projection=columns)
        tasks = [
            SampleTask(
                context,
                tuple(chosen[start : start + SAMPLED_AT_ONCE]),
                keys,
                min(SAMPLE_ROWS / max(rows, 1), 1.0),
                start,
            )
            for start in range(0, len(chosen), SAMPLED_AT_ONCE)
        ]
        size = sum(file.file_size_in_bytes for file in chosen)
        found = self._run(sample_kernel, tasks, keys.columns.arrow, size, "sampling")
        held = found.combine_chunks().to_batches()
        sample = held[0] if held else pa.RecordBatch.from_pylist([], keys.columns.arrow)
        return self.order.ranges(sample, self.files, self.per_file)

    def _split(self, ranges: Ranges, folder: str) -> pa.Table:
        size = self.group.size_in_bytes
        count = max(
            -(-size // SPLIT_TASK_BYTES), min(self.engine.parallelism, len(self.group.files))
        )
        tasks = [
            SplitTask(self.making.task(self.group, places, number), ranges, folder)
            for number, places in enumerate(neighbours(self.group, count))
        ]
        return self._run(split_kernel, tasks, SPLIT, size, "splitting")

    def _written(self, pieces: pa.Table) -> pa.Table:
        by_range: list[list[Piece]] = [[] for _ in range(self.files * self.per_file)]
        for row in pieces.drop_columns(["source", "dropped"]).to_pylist():
            by_range[row["part"]].append(Piece(**row))
        tasks = []
        write = self.whole.write
        for number in range(self.files):
            first = number * self.per_file
            ranges = tuple(tuple(each) for each in by_range[first : first + self.per_file])
            if any(ranges):
                named = replace(write, task_number=number)
                tasks.append(RangeTask(number, named, self.order, ranges))
        return self._run(range_kernel, tasks, REWRITTEN, self.group.size_in_bytes, "writing")

    def _run(
        self, kernel: Any, tasks: list[Any], output: pa.Schema, size_in_bytes: int, what: str
    ) -> pa.Table:
        return self.engine.run(
            kernel,
            tasks,
            output,
            size_in_bytes=size_in_bytes,
            label=f"compacting {self.view.name}: {what}",
            progress=self.progress,
        )
