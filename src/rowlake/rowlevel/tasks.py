"""Files and parts of the source become tasks.

Comes in: a file plan and staged source rows. Goes out: `ChangeTask`s, few and fat. A file goes
with the parts that may match its rows; a part that one task alone reads is owned by it, so that
what no row matched is inserted there, beside the rows of its partition. A part that several tasks
need (files of other specs, a skewed partition split by file, one part for all) is owned by none:
its inserts come in a second round.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rowlake.model.values import encode_partitions
from rowlake.plan.tasks import OPEN_FILE_BYTES, SPLIT_BYTES, pack, scan_tasks, task_count
from rowlake.rowlevel.staged import WHOLE, part_of_location, part_of_partition, pieces_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rowlake.model.task import FileTask
    from rowlake.plan.files import FilePlan
    from rowlake.rowlevel.operation import Staged
    from rowlake.rowlevel.staged import Piece
    from rowlake.rowlevel.task import ChangeTask
    from rowlake.write.position_deletes import Partition

# A group of files heavier than this many fair shares is split among tasks.
_SKEW = 1.5
# Groups of files that share no part give as many new files in several tasks as in one, so little
# work is enough for a task.
_LEAST_APART_BYTES = 3 * 1024 * 1024


@dataclass(frozen=True)
class TaskLayout:
    """Which parts of the source each target file needs."""

    staged: Staged | None

    def parts_of(self, file: FileTask, partition: Partition, present: frozenset[int]) -> list[int]:
        """Return the parts that may match a file's rows; only those that hold any."""
        if self.staged is None:
            return []
        dealing = self.staged.dealing
        if dealing.file_column is not None:
            wanted = [part_of_location(file.location)]
        elif dealing.spec is None:
            wanted = [WHOLE]
        elif file.spec_id == dealing.spec.spec_id:
            wanted = [part_of_partition(partition)]
        else:
            return sorted(present)
        every = [one for part in wanted for one in self.staged.split.get(part, (part,))]
        return [part for part in every if part in present]


@dataclass(frozen=True)
class Placed:
    """One file with what it needs."""

    file: FileTask
    partition: Partition
    parts: tuple[int, ...]

    @property
    def weight(self) -> float:
        """What it costs to read, about, in bytes."""
        return float(max(self.file.bytes_to_read, OPEN_FILE_BYTES))


def placed_files(plan: FilePlan, layout: TaskLayout, template: ChangeTask) -> list[Placed]:
    """Return the files of a plan, each with its partition and the parts it needs."""
    partitions = _partitions(plan)
    present = frozenset(_present(layout.staged))
    files = [file for task in scan_tasks(plan, template.context, slots=1) for file in task.files]
    return [
        Placed(
            file,
            partitions[file.location],
            tuple(layout.parts_of(file, partitions[file.location], present)),
        )
        for file in files
    ]


def change_tasks(
    template: ChangeTask, placed: list[Placed], staged: Staged | None, *, slots: int, inserts: bool
) -> list[ChangeTask]:
    """Return the tasks; parts that no file needs go to the tasks with the least to do."""
    bins = _bins(placed, slots)
    pieces = _pieces(staged)
    readers = Counter(part for held in bins for part in {p for one in held for p in one.parts})
    owned: list[set[int]] = [
        {part for one in held for part in one.parts if readers[part] == 1} for held in bins
    ]
    if inserts:
        _spread_rest(bins, owned, [part for part in pieces if part not in readers], pieces, slots)
    return [
        _task(template, held, own if inserts else set(), pieces)
        for held, own in zip(bins, owned, strict=True)
    ]


def insert_tasks(
    template: ChangeTask, matched: Mapping[int, bytes], staged: Staged, *, slots: int
) -> list[ChangeTask]:
    """Return tasks that insert what is left of some parts, none of which has an owner."""
    pieces = _pieces(staged)
    numbers = sorted(matched)
    weights = np.array([_weight(pieces[number]) for number in numbers], float)
    return [
        replace(
            _task(template, [], {numbers[place] for place in places.tolist()}, pieces),
            matched={numbers[place]: matched[numbers[place]] for place in places.tolist()},
        )
        for places in pack(weights, slots)
    ]


def _task(
    template: ChangeTask,
    held: list[Placed],
    owned: Iterable[int],
    pieces: Mapping[int, list[Piece]],
) -> ChangeTask:
    needed = sorted({part for one in held for part in one.parts} | set(owned))
    return replace(
        template,
        files=tuple(one.file for one in held),
        partitions=tuple(one.partition for one in held),
        parts=tuple(one.parts for one in held),
        pieces=tuple(piece for part in needed for piece in pieces[part]),
        owned=frozenset(owned),
    )


def _bins(placed: list[Placed], slots: int) -> list[list[Placed]]:
    """Return the files of each task: those that share parts together, unless they are too many."""
    groups: dict[tuple[int, ...], list[Placed]] = defaultdict(list)
    for one in placed:
        groups[one.parts].append(one)
    total = sum(one.weight for one in placed)
    count = task_count(total, SPLIT_BYTES, slots)
    if count == 1:
        held = sum(one.file.bytes_to_read for one in placed)
        count = max(1, min(slots, len(groups), held // _LEAST_APART_BYTES))
    fair = total / count if count else 0.0
    pieces: list[list[Placed]] = []
    for group in groups.values():
        weights = np.array([one.weight for one in group])
        shares = round(weights.sum() / fair) if weights.sum() > _SKEW * fair else 1
        pieces += [[group[place] for place in places.tolist()] for places in pack(weights, shares)]
    weights = np.array([sum(one.weight for one in piece) for piece in pieces], float)
    packed = pack(weights, count)
    return [[one for place in places.tolist() for one in pieces[place]] for places in packed]


def _spread_rest(
    bins: list[list[Placed]],
    owned: list[set[int]],
    rest: list[int],
    pieces: Mapping[int, list[Piece]],
    slots: int,
) -> None:
    if not rest:
        return
    if not bins:
        weights = np.array([_weight(pieces[part]) for part in rest], float)
        count = task_count(float(weights.sum()), SPLIT_BYTES, slots)
        for places in pack(weights, count):
            bins.append([])
            owned.append({rest[place] for place in places.tolist()})
        return
    for number, part in enumerate(rest):
        owned[number % len(owned)].add(part)


def _weight(pieces: list[Piece]) -> float:
    return float(sum(piece.size_in_bytes for piece in pieces))


def _present(staged: Staged | None) -> set[int]:
    return set() if staged is None else set(staged.rows["part"].to_pylist())


def _pieces(staged: Staged | None) -> dict[int, list[Piece]]:
    """Return the pieces of each part, in one order for all tasks: rows are known by number."""
    found: dict[int, list[Piece]] = defaultdict(list)
    for piece in pieces_of(staged.rows) if staged is not None else ():
        found[piece.part].append(piece)
    return dict(found)


def _partitions(plan: FilePlan) -> dict[str, Partition]:
    found: dict[str, Partition] = {}
    for files in plan.data.values():
        encoded = encode_partitions(files["partition"].combine_chunks()).to_pylist()
        locations = files["location"].to_pylist()
        found |= {place: tuple(key) for place, key in zip(locations, encoded, strict=True)}
    return found
