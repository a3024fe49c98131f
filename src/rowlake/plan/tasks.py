"""Turn files into a few large tasks: big files are split, small ones packed.

Comes in: a `FilePlan`. Goes out: `ScanTask`s. Python objects per file are made only here, and only
for the remaining files. Invariants: each byte range of each file is in exactly one task; the tasks
are of about equal weight, where opening a file (or a delete file) weighs as much as reading
`read.split.open-file-cost` bytes.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rowlake.model.properties import whole_number
from rowlake.model.schema import children, field_id
from rowlake.model.task import FileTask, ScanContext, ScanTask
from rowlake.prune.metrics import one_array
from rowlake.prune.row_ranges import partition_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from rowlake.model.files import DeleteFile
    from rowlake.plan.delete_index import Applied
    from rowlake.plan.files import FilePlan

    Numbers = np.ndarray[Any, Any]

MEGABYTE = 1 << 20
SPLIT_BYTES = 128 * MEGABYTE
OPEN_FILE_BYTES = 4 * MEGABYTE
LEAST_TASK_BYTES = 32 * MEGABYTE
TASKS_PER_SLOT = 3
# Sizes of manifests may be false, and each split opens the file: beyond these counts, splits are
# larger than asked for.
MOST_SPLITS = 1_000_000
MOST_SPLITS_PER_FILE, LEAST_SPLITS_PER_FILE = 1000, 8
FEW_PIECES = 20_000  # beyond, neighbours are packed together instead of by weight


@dataclass(frozen=True)
class Pieces:
    """Byte ranges of files of one spec: parallel arrays; `rows` are rows of the plan's table."""

    spec_id: int
    rows: Numbers
    starts: Numbers
    lengths: Numbers
    weights: Numbers


def scan_tasks(
    plan: FilePlan,
    context: ScanContext,
    *,
    slots: int,
    by_partition: bool = False,
    least_bytes: int | None = None,
) -> list[ScanTask]:
    """Return the tasks of a plan, heaviest first, for an engine that runs `slots` at a time.

    With `by_partition`, no task has files of two partitions. Less than `least_bytes` is not worth
    a task while others are idle.
    """
    pieces = [_pieces(plan, spec_id) for spec_id in plan.data]
    weights = np.concatenate([np.zeros(0), *(each.weights for each in pieces)])
    if not len(weights):
        return []
    split_bytes = whole_number(plan.view.properties, "read.split.target-size", SPLIT_BYTES, least=1)
    groups = _partitions(plan, pieces) if by_partition else np.zeros(len(weights), dtype=np.int64)
    count = task_count(float(weights.sum()), split_bytes, slots, least_bytes)
    bins = [
        rows[packed]
        for rows in _grouped(groups)
        for packed in pack(weights[rows], _share(weights, rows, count))
    ]
    bins.sort(key=lambda rows: -float(weights[rows].sum()))
    made = _FileTasks(plan, pieces)
    return [ScanTask(context, tuple(made.of(rows))) for rows in bins]


def whole_files(plan: FilePlan, spec_id: int) -> list[FileTask]:
    """Return the data files of one spec, each whole, in the order of the plan."""
    sizes = np.asarray(one_array(plan.data[spec_id].column("file_size_in_bytes")))
    rows = np.arange(len(sizes))
    pieces = Pieces(spec_id, rows, np.zeros_like(sizes), sizes, sizes.astype(float))
    return list(_FileTasks(plan, [pieces]).of(rows))


def task_count(weight: float, split_bytes: int, slots: int, least_bytes: int | None = None) -> int:
    """Return how many tasks some work is worth.

    Little work goes to as many slots as have something to do; more of it to about
    `TASKS_PER_SLOT` tasks per slot, so that a slow one does not hold up all.
    """
    if weight <= slots * split_bytes:
        return max(1, min(slots, int(weight // (least_bytes or LEAST_TASK_BYTES))))
    # As many for each slot, or some are idle while the last ones run.
    per_slot = min(TASKS_PER_SLOT, int(-(-weight // (split_bytes * slots))))
    return slots * per_slot


def pack(weights: Numbers, count: int) -> list[Numbers]:
    """Return `count` sets of positions of about equal weight, or fewer; none is empty."""
    count = min(count, len(weights))
    if count <= 1:
        return [np.arange(len(weights))] if len(weights) else []
    if len(weights) > FEW_PIECES:
        return _packed_neighbours(weights, count)
    loads = [(0.0, number) for number in range(count)]
    bins: list[list[int]] = [[] for _ in range(count)]
    for position in np.argsort(-weights, kind="stable").tolist():
        load, number = heapq.heappop(loads)
        bins[number].append(position)
        heapq.heappush(loads, (load + float(weights[position]), number))
    return [np.sort(np.array(held)) for held in bins if held]


def _packed_neighbours(weights: Numbers, count: int) -> list[Numbers]:
    middles = np.cumsum(weights) - weights / 2
    numbers = (middles * (count / weights.sum())).astype(np.int64)
    edges = np.searchsorted(numbers, np.arange(count + 1))
    found = [np.arange(first, last) for first, last in pairwise(edges)]
    return [held for held in found if len(held)]


def _share(weights: Numbers, rows: Numbers, count: int) -> int:
    """Return a group's share of the tasks, at least one."""
    return max(1, round(count * float(weights[rows].sum()) / float(weights.sum())))


def _grouped(groups: Numbers) -> list[Numbers]:
    """Return the positions of each group."""
    order = np.argsort(groups, kind="stable")
    edges = np.flatnonzero(np.diff(groups[order])) + 1
    return np.split(order, edges)


def _partitions(plan: FilePlan, pieces: list[Pieces]) -> Numbers:
    """Return a number per piece that identifies its partition, across specs."""
    found, taken = [], 0
    for each in pieces:
        partitions = one_array(plan.data[each.spec_id].column("partition"))
        keys, _ = partition_keys(partitions, partitions.slice(0, 0))
        found.append(keys[each.rows] + taken)
        taken += int(keys.max(initial=0)) + 1
    return np.concatenate(found)


def _pieces(plan: FilePlan, spec_id: int) -> Pieces:
    """Split the files larger than a split; the rest are one piece each."""
    table = plan.data[spec_id]
    properties = plan.view.properties
    split_bytes = whole_number(properties, "read.split.target-size", SPLIT_BYTES, least=1)
    open_bytes = whole_number(properties, "read.split.open-file-cost", OPEN_FILE_BYTES, least=1)
    sizes = np.asarray(one_array(table.column("file_size_in_bytes")))
    rows, starts, lengths = _split(table, sizes, split_bytes)
    opened = (1 + plan.applied[spec_id].counts[rows]) * float(open_bytes)
    return Pieces(spec_id, rows, starts, lengths, np.maximum(lengths, opened).astype(float))


def _split(table: pa.Table, sizes: Numbers, split_bytes: int) -> tuple[Numbers, Numbers, Numbers]:
    big = np.flatnonzero(sizes > split_bytes)
    rows, starts, lengths = np.arange(len(sizes)), np.zeros(len(sizes), dtype=np.int64), sizes
    if not len(big):
        return rows, starts, lengths
    offsets = table.column("split_offsets").take(big).to_pylist()
    share = max(LEAST_SPLITS_PER_FILE, MOST_SPLITS // len(big))
    most = min(share, MOST_SPLITS_PER_FILE)
    cuts = [
        split_starts(int(sizes[row]), known, split_bytes, most)
        for row, known in zip(big.tolist(), offsets, strict=True)
    ]
    more = np.repeat(big, [len(each) for each in cuts])
    first = np.concatenate([np.array(each, dtype=np.int64) for each in cuts])
    ends = np.concatenate(
        [np.array([*each[1:], size]) for each, size in zip(cuts, sizes[big], strict=True)]
    )
    rows = np.concatenate([np.delete(rows, big), more])
    starts = np.concatenate([np.delete(starts, big), first])
    lengths = np.concatenate([np.delete(lengths, big), ends - first])
    order = np.lexsort((starts, rows))
    return rows[order], starts[order], lengths[order]


def split_starts(
    size: int, offsets: list[int] | None, split_bytes: int, most: int = MOST_SPLITS_PER_FILE
) -> list[int]:
    """Return where the splits of a file start: at offsets of row groups, if they can be trusted.

    A split takes the row groups that start in it, so any start is right; offsets only make
    splits that are neither empty nor much larger than asked for. There are at most `most`, or
    one per offset.
    """
    known = offsets or []
    rising = all(a < b for a, b in pairwise(known))
    if not known or not rising or known[-1] >= size or known[0] < 0:
        count = min(-(-size // split_bytes), most)
        return [size * number // count for number in range(count)]
    starts = [0]
    for place, offset in enumerate(known[1:], start=1):
        end = known[place + 1] if place + 1 < len(known) else size
        if end - starts[-1] > split_bytes:
            starts.append(offset)
    return starts


class _FileTasks:
    """Makes the `FileTask` of each piece; what pieces of a file share is made once."""

    def __init__(self, plan: FilePlan, pieces: list[Pieces]) -> None:
        self._plan, self._pieces = plan, pieces
        self._edges = np.cumsum([0, *(len(each.rows) for each in pieces)])
        self._files = {each.spec_id: _files(plan.data[each.spec_id]) for each in pieces}
        for spec_id in self._files:  # all at once, which is far quicker than file by file
            plan.deletes.delete_files(plan.applied[spec_id].used().tolist())

    def of(self, positions: Numbers) -> Iterator[FileTask]:
        """Yield the files of one task, in the order of the plan."""
        numbers = np.searchsorted(self._edges, positions, side="right") - 1
        for number in np.unique(numbers).tolist():
            places = positions[numbers == number] - self._edges[number]
            yield from self._of_spec(self._pieces[number], places)

    def _of_spec(self, pieces: Pieces, places: Numbers) -> Iterator[FileTask]:
        files, applied = self._files[pieces.spec_id], self._plan.applied[pieces.spec_id]
        for row, start, length in zip(
            pieces.rows[places].tolist(),
            pieces.starts[places].tolist(),
            pieces.lengths[places].tolist(),
            strict=True,
        ):
            location, file_format, size, records, sequence_number, first_row_id, values = files[row]
            yield FileTask(
                location,
                file_format,
                size,
                records,
                start,
                length,
                pieces.spec_id,
                values,
                self._deletes(applied, row),
                sequence_number,
                first_row_id,
                self._plan.rows.get(location),
            )

    def _deletes(self, applied: Applied, row: int) -> tuple[DeleteFile, ...]:
        return self._plan.deletes.delete_files(applied.rows_of(row)) if applied.groups else ()


_TASK_COLUMNS = [
    "location",
    "file_format",
    "file_size_in_bytes",
    "record_count",
    "data_sequence_number",
    "first_row_id",
]


def _files(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return what tasks need of each file: `_TASK_COLUMNS`, then the partition values."""
    columns = [_python(table.column(name)) for name in _TASK_COLUMNS]
    return list(zip(*columns, _partition_values(table), strict=True))


def _python(column: pa.ChunkedArray) -> list[Any]:
    """Return Python values; through numpy where that is quicker and loses nothing."""
    if column.null_count:
        return list(column.to_pylist())
    return list(column.to_numpy().tolist())


def _partition_values(table: pa.Table) -> Iterable[Mapping[int, Any]]:
    """Return each file's partition values by partition field id."""
    partitions = one_array(table.column("partition"))
    fields = children(partitions.type)
    if not fields:
        return [{}] * table.num_rows
    ids = [field_id(each) or 0 for each in fields]
    keys, _ = partition_keys(partitions, partitions.slice(0, 0))
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    columns = (column.to_pylist() for column in partitions.take(first).flatten())
    distinct = [dict(zip(ids, values, strict=True)) for values in zip(*columns, strict=True)]
    return [distinct[place] for place in places.tolist()]
