"""The change kernel: one task's data files, matched and changed where they are read.

Comes in: data files with the deletes that apply, staged source rows and clauses. Goes out: rows
of `OUTCOMES`: one per file that changed, one per part of the source, one per file written. A task
reads only the key columns of files without matches; what it rewrites is never shuffled. Files are
whole: the vector of a data file is made by one task. Memory is bounded by the source's parts, the
matches of one file and a batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowlake.model.distinct import distinct
from rowlake.model.files import WRITTEN_FILES, Content
from rowlake.model.merge import Action, When
from rowlake.model.schema import Schema
from rowlake.model.task import LARGE_BATCH_ROWS, ScanTask
from rowlake.rowlevel.images import Images
from rowlake.rowlevel.matches import POSITION, Changes, changes_of
from rowlake.rowlevel.rows import inserted_rows, patched, target_columns, updated_rows
from rowlake.rowlevel.source import Part, SourceRows, flags
from rowlake.rowlevel.strategy import Way, way_for
from rowlake.rowlevel.task import OUTCOMES, ChangeTask, TaskClause
from rowlake.scan.deletes import load_deletes
from rowlake.scan.kernel import live_rows, picked_rows, scan_kernel
from rowlake.scan.open import keeping_open
from rowlake.storage.files import Storage
from rowlake.storage.tally import counting
from rowlake.write.kernel import remove_written, write_batches
from rowlake.write.position_deletes import DeletedPositions, Partition, PositionDeleteWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from rowlake.model.task import FileTask, ScanContext

    Numbers = NDArray[np.int64]

_INSERT_ROWS = 1 << 18


@dataclass
class _Work:
    """What came of a task so far."""

    images: Images
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    deleted: list[DeletedPositions] = field(default_factory=list)


def change_kernel(task: ChangeTask) -> Iterator[pa.RecordBatch]:
    """Change the rows of a task's files, insert what is left; on failure remove what it wrote."""
    storage = Storage(task.context.io_properties)
    source, work = SourceRows(task, storage), _Work(Images(task))
    written = WRITTEN_FILES.empty_table()
    try:
        with counting() as read:
            new_rows = _new_rows(task, source, work, storage)
            batches = list(write_batches(task.write, new_rows))
        work.outcomes.append({"source": None, "bytes_read": read.size_in_bytes})
        written = pa.Table.from_batches(batches, WRITTEN_FILES)
        writer = PositionDeleteWriter(
            task.delete_folder,
            task.as_vectors,
            task.granularity,
            storage,
            task.write.operation_id,
            task.write.layout.vectors,
        )
        written = pa.concat_tables([written, writer.write(work.deleted)])
        written = pa.concat_tables([written, work.images.close()])
    except BaseException as error:
        remove_written(written, storage)
        work.images.remove_all(error)
        raise
    yield from outcome_batches([*work.outcomes, *matches_of(task, source)], written)


def _new_rows(
    task: ChangeTask, source: SourceRows, work: _Work, storage: Storage
) -> Iterator[pa.RecordBatch]:
    """Yield all rows to be written: new versions, copies beside them, inserts."""
    for file, partition, parts in zip(task.files, task.partitions, task.parts, strict=True):
        with keeping_open():  # its keys are read first, then other columns
            changes = changes_of(task, file, parts, source)
            if len(changes):
                yield from _changed(task, file, partition, changes, work, storage)
        if changes.unchanged and not len(changes):
            work.outcomes.append({"source": None, "unchanged": changes.unchanged})
        if changes.kept and task.of(When.NOT_MATCHED):
            work.outcomes.append({"source": None, "kept": file.location})
    for number in sorted(task.owned):
        yield from _inserted(task, source.part(number), work)


def _changed(
    task: ChangeTask,
    file: FileTask,
    partition: Partition,
    changes: Changes,
    work: _Work,
    storage: Storage,
) -> Iterator[pa.RecordBatch]:
    deletes = load_deletes(task.context, file, storage)
    # Rows that equality deletes hide are not counted here: such a file is never taken for empty.
    live = live_rows(task.context, file, deletes, storage)
    outcome = outcome_of(task, file, changes, live)
    work.images.add_old(file, changes)
    updates, way = changes.of(task, Action.UPDATE), Way(outcome["way"])
    if way is Way.REWRITE:
        for batch in _rewritten(task, file, changes, work.images):
            outcome["copied"] += batch.num_rows
            yield batch
        outcome["copied"] -= len(updates)
    else:
        for batch in _updated(task, file, updates):
            work.images.add_new(batch)
            yield batch
    if way is Way.DELETE_FILE:
        every = distinct(deletes.positions, changes.positions)
        work.deleted.append(DeletedPositions(file.location, file.spec_id, partition, every))
        outcome["replaced_deletes"] = _replaced(file)
    work.outcomes.append(outcome)


def outcome_of(task: ChangeTask, file: FileTask, changes: Changes, live: int) -> dict[str, Any]:
    """Return what is done with a file of which some of `live` rows change."""
    way = way_for(task.mode, matched=len(changes), live=live)
    updated = len(changes.of(task, Action.UPDATE))
    return {
        "source": file.location,
        "way": way.value,
        "updated": updated,
        "deleted": len(changes) - updated,
        "unchanged": changes.unchanged,
        "copied": 0,
        "live": live,
    }


def _replaced(file: FileTask) -> list[dict[str, Any]]:
    """Return the deletes that only this file has: the new ones hold their positions too."""
    return [
        {"location": old.location, "content_offset": old.content_offset}
        for old in file.deletes
        if old.content is Content.POSITION_DELETES
        and (old.is_vector or old.referenced_data_file == file.location)
    ]


def _updated(task: ChangeTask, file: FileTask, updates: Changes) -> Iterator[pa.RecordBatch]:
    """Yield the new versions of updated rows; reads only what stays of them."""
    if not len(updates):
        return
    updating = {int(number): _with_keys(task, number) for number in np.unique(updates.clause)}
    context = _context_for(task, updating)
    for batch in picked_rows(context, file, updates.positions):
        first = int(np.searchsorted(updates.positions, batch.column(POSITION.name)[0].as_py()))
        chosen = np.zeros(len(updates), np.bool_)
        chosen[first : first + batch.num_rows] = True
        yield _new_versions(task, batch, updates.where(chosen), updating)


def _context_for(task: ChangeTask, updating: Mapping[int, TaskClause]) -> ScanContext:
    """Return how to read what some clauses leave as it is; the same for all files of a task."""
    key = ("updated", *updating)
    if key not in task.context.held:
        kept = target_columns(task.write.schema.arrow, list(updating.values()))
        projection = Schema(pa.schema([*kept, POSITION]))
        task.context.held[key] = replace(
            task.context,
            projection=projection,
            predicate=None,
            exact=False,
            batch_rows=LARGE_BATCH_ROWS,
        )
    context: ScanContext = task.context.held[key]
    return context


def _with_keys(task: ChangeTask, number: int) -> TaskClause:
    """Return an UPDATE that takes the keys of matched rows from the source, where they are alike.

    Floating-point keys may not be: zeros of both signs are one key.
    """
    clause = task.clauses[number]
    if clause.when is not When.MATCHED or task.staged_schema is None:
        return clause
    types = {field.name: field.type for field in task.write.schema.arrow}
    same = {
        name: staged
        for name, staged in task.matching.keys
        if types[name].equals(task.staged_schema.field(staged).type)
        and not pa.types.is_floating(types[name])
    }
    return replace(clause, values={**same, **clause.values})


def _new_versions(
    task: ChangeTask,
    batch: pa.RecordBatch,
    updates: Changes,
    updating: Mapping[int, TaskClause] | None = None,
) -> pa.RecordBatch:
    """Return rows of the target (one for each update) as clauses of the task, or others, say."""
    held = updating or dict(enumerate(task.clauses))
    clauses = [
        (held[int(number)], np.flatnonzero(updates.clause == number))
        for number in np.unique(updates.clause)
    ]
    return updated_rows(task.write.schema.arrow, batch, updates.rows, updates.source, clauses)


def _rewritten(
    task: ChangeTask, file: FileTask, changes: Changes, images: Images
) -> Iterator[pa.RecordBatch]:
    """Yield all live rows of a file: deleted ones left out, updated ones in their new version."""
    columns = task.write.schema.arrow
    context = replace(
        task.context, projection=Schema(columns.append(POSITION)), predicate=None, exact=False
    )
    deletes = np.array([clause.action is Action.DELETE for clause in task.clauses], np.bool_)
    gone = changes.positions[deletes[changes.clause]]
    updates = changes.of(task, Action.UPDATE)
    whole = replace(file, only=None)
    for batch in scan_kernel(ScanTask(context, (whole,))):
        positions = np.asarray(batch.column(len(columns)))
        rows = batch.select(columns.names)
        low, high = np.searchsorted(updates.positions, (positions[0], positions[-1] + 1))
        if low < high:
            some = np.zeros(len(updates), np.bool_)
            some[low:high] = True
            mask = np.isin(positions, updates.positions[low:high], assume_unique=True)
            new = _new_versions(task, rows.filter(pa.array(mask)), updates.where(some))
            images.add_new(new)
            rows = patched(rows, mask, new)
        lost = np.isin(positions, gone, assume_unique=True)
        yield rows.filter(pa.array(~lost)) if lost.any() else rows


def _inserted(task: ChangeTask, part: Part, work: _Work) -> Iterator[pa.RecordBatch]:
    """Yield the source rows of a part that matched nothing, as the clauses insert them."""
    count = 0
    for clause, own in insertions(task, part):
        count += len(own)
        for start in range(0, len(own), _INSERT_ROWS):
            some = own[start : start + _INSERT_ROWS]
            batch = inserted_rows(task.write.schema.arrow, part.rows, some, clause)
            work.images.add_inserted(batch)
            yield batch
    work.outcomes.append({"part": part.number, "inserted": count})


def insertions(task: ChangeTask, part: Part) -> Iterator[tuple[TaskClause, Numbers]]:
    """Yield the clauses that insert, each with the rows of a part that it inserts."""
    left = np.flatnonzero(~part.matched)
    for _, clause in task.of(When.NOT_MATCHED):
        own, left = _split(left, part, clause)
        yield clause, own


def matches_of(task: ChangeTask, source: SourceRows) -> list[dict[str, Any]]:
    """Return which rows matched of the parts that are left to be inserted by other tasks."""
    if not task.of(When.NOT_MATCHED):
        return []
    return [
        {"part": number, "matched": bitmap}
        for number, bitmap in source.matched_bitmaps().items()
        if number not in task.owned
    ]


def _split(rows: Numbers, part: Part, clause: TaskClause) -> tuple[Numbers, Numbers]:
    if clause.flag is None:
        return rows, rows[:0]
    chosen = flags(part.rows, clause.flag)[rows]
    return rows[chosen], rows[~chosen]


def outcome_batches(found: list[dict[str, Any]], files: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield rows of `OUTCOMES`: what was found, then the files written."""
    if found:
        yield pa.RecordBatch.from_pylist(found, OUTCOMES)
    for batch in files.combine_chunks().to_batches():
        struct = pa.StructArray.from_arrays(batch.columns, fields=list(WRITTEN_FILES))
        columns = [pa.nulls(len(batch), kind.type) for kind in OUTCOMES][:-1]
        yield pa.RecordBatch.from_arrays([*columns, struct], schema=OUTCOMES)
