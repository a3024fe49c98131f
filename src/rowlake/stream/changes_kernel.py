"""The kernel of change feeds: a task's groups to raw changes.

Raw changes are inserts and deletes, with the columns of `ChangeContext.rows` and those that
describe the change. Of a rewrite, rows that are on both sides cancel out here: where all have row
ids, the ids and the sequence numbers of the last update say so, and only the other rows are read;
else whole rows are compared. Of files with new deletes only the rows are read that the deletes hit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import CorruptTableError, InternalError
from rowlake.model.feed import CHANGE_FIELDS, CHANGE_TYPES, DELETE, INSERT
from rowlake.model.schema import FIELD_ID, Schema
from rowlake.model.task import (
    CHANGE_TYPE_COLUMN,
    LAST_UPDATED_COLUMN,
    LAST_UPDATED_COLUMN_ID,
    POS_COLUMN,
    POS_COLUMN_ID,
    ROW_ID_COLUMN,
    ROW_ID_COLUMN_ID,
    ScanTask,
)
from rowlake.scan.kernel import picked_rows, scan_kernel
from rowlake.storage.files import Storage
from rowlake.stream.changes_codes import row_codes
from rowlake.stream.changes_hits import changed_positions
from rowlake.stream.changes_settle import Settling, cancelled, chosen, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from rowlake.model.task import FileTask, ScanContext
    from rowlake.stream.changes_task import ChangeContext, ChangeGroup, ChangeTask, CommitMark

    Batches = Iterator[pa.RecordBatch]


def metadata_field(name: str, kind: pa.DataType, identity: int) -> pa.Field:
    """Return a metadata column as a scan projects it."""
    return pa.field(name, kind, metadata={FIELD_ID: str(identity).encode()})


_LINEAGE = Schema(
    pa.schema(
        [
            metadata_field(POS_COLUMN, pa.int64(), POS_COLUMN_ID),
            metadata_field(ROW_ID_COLUMN, pa.int64(), ROW_ID_COLUMN_ID),
            metadata_field(LAST_UPDATED_COLUMN, pa.int64(), LAST_UPDATED_COLUMN_ID),
        ]
    )
)


def raw_schema(context: ChangeContext) -> pa.Schema:
    """Return the columns of raw changes."""
    return pa.schema([*context.rows.projection.arrow, *CHANGE_FIELDS])


def raw_changes(task: ChangeTask) -> Batches:
    """Yield the raw changes of a task's groups."""
    for group in task.groups:
        yield from _group_changes(task.context, group)


def final_changes(how: Settling, task: ChangeTask) -> Batches:
    """Yield changes that need no other rows to be settled."""
    for batch in raw_changes(task):
        yield from chosen(plain(pa.Table.from_batches([batch]), how), how).to_batches()


def _group_changes(context: ChangeContext, group: ChangeGroup) -> Batches:
    if group.removed and group.added:
        reader = _by_row_id if group.has_row_ids else _by_values
        yield from reader(context, group)
    else:
        how = context.whole if group.cancels else context.rows
        for files, kind in ((group.removed, DELETE), (group.added, INSERT)):
            batches = scan_kernel(ScanTask(how, files)) if files else iter(())
            yield from _described(context, batches, kind, group)
    if group.images:
        yield from _images(context, group)
    storage = Storage(context.rows.io_properties)
    for marked in group.marked:
        for file, positions, kind in changed_positions(context.rows, marked, storage):
            yield from _described(context, picked_rows(context.rows, file, positions), kind, group)


def _images(context: ChangeContext, group: ChangeGroup) -> Batches:
    """Yield the rows of files that say of each row what happened to it."""
    if context.images is None:
        raise InternalError("a change feed has no context for images")
    for batch in scan_kernel(ScanTask(context.images, group.images)):
        kinds = batch.column(CHANGE_TYPE_COLUMN)
        for kind in pc.unique(kinds).to_pylist():
            if kind not in CHANGE_TYPES:
                raise CorruptTableError(
                    group.images[0].location, f"it has a change of the unknown type {kind!r}"
                )
            rows = batch.filter(pc.equal(kinds, kind))
            yield from _described(context, [rows], kind, group)


# --- rewrites


def _by_values(context: ChangeContext, group: ChangeGroup) -> Batches:
    """Yield the rows that are on one side only, as often as they are."""
    schema = pa.schema(list(context.whole.projection.arrow))
    old, new = (
        pa.Table.from_batches(scan_kernel(ScanTask(context.whole, files)), schema)
        for files in (group.removed, group.added)
    )
    both = pa.concat_tables([old, new])
    names = [name for name in schema.names if not (context.row_ids and name == ROW_ID_COLUMN)]
    codes = row_codes([both[name] for name in names], both.num_rows)
    is_delete = np.arange(both.num_rows) < old.num_rows
    left = cancelled(codes, is_delete)
    for side, kind in ((is_delete, DELETE), (~is_delete, INSERT)):
        rows = both.take(pa.array(np.flatnonzero(left & side)))
        yield from _described(context, rows.to_batches(), kind, group)


def _by_row_id(context: ChangeContext, group: ChangeGroup) -> Batches:
    """Yield the rows whose id or last update is on one side only.

    Rows whose ids are on one side may have lost their ids in a rewrite: they are compared whole.
    """
    light = replace(context.whole, projection=_LINEAGE)
    old, new = ([_lineage(light, file) for file in files] for files in (group.removed, group.added))
    keys = [np.concatenate([part[:, 1:] for part in side]) for side in (old, new)]
    left = _unmatched(*keys)
    old_rows = _picked(context.whole, group.removed, old, left[0])
    new_rows = _picked(context.whole, group.added, new, left[1])
    yield from _moved_apart(context, group, old_rows, new_rows)


def _moved_apart(
    context: ChangeContext, group: ChangeGroup, old: pa.Table, new: pa.Table
) -> Batches:
    ids = [np.asarray(side[ROW_ID_COLUMN].combine_chunks()) for side in (old, new)]
    lone = [~np.isin(ids[0], ids[1]), ~np.isin(ids[1], ids[0])]
    if all(each.any() for each in lone):
        names = [name for name in old.column_names if name != ROW_ID_COLUMN]
        both = pa.concat_tables([old, new]).select(names)
        alone = np.concatenate(lone)
        rows = both.take(pa.array(np.flatnonzero(alone)))
        codes = row_codes(rows.columns, rows.num_rows)
        stays = np.ones(both.num_rows, np.bool_)
        stays[alone] = cancelled(codes, np.flatnonzero(alone) < old.num_rows)
        old, new = (
            side.filter(pa.array(kept))
            for side, kept in zip((old, new), np.split(stays, [old.num_rows]), strict=True)
        )
    yield from _described(context, old.to_batches(), DELETE, group)
    yield from _described(context, new.to_batches(), INSERT, group)


def _lineage(light: ScanContext, file: FileTask) -> NDArray[np.int64]:
    """Return position, row id and sequence number of the last update of each live row."""
    schema = pa.schema(list(light.projection.arrow))
    table = pa.Table.from_batches(scan_kernel(ScanTask(light, (file,))), schema)
    columns = [np.asarray(column.combine_chunks()).astype(np.int64) for column in table.columns]
    return np.stack(columns, axis=1)


def _unmatched(old: NDArray[np.int64], new: NDArray[np.int64]) -> list[NDArray[np.bool_]]:
    """Return which rows of each side have no row with the same numbers on the other."""
    both = np.concatenate([old, new])
    codes = row_codes([pa.array(both[:, 0]), pa.array(both[:, 1])], len(both))
    left = cancelled(codes, np.arange(len(both)) < len(old))
    return np.split(left, [len(old)])


def _picked(
    context: ScanContext,
    files: Sequence[FileTask],
    lineage: Sequence[NDArray[np.int64]],
    left: NDArray[np.bool_],
) -> pa.Table:
    edges = np.cumsum([len(part) for part in lineage])[:-1]
    batches: list[pa.RecordBatch] = []
    for file, part, wanted in zip(files, lineage, np.split(left, edges), strict=True):
        positions = part[wanted, 0]
        if len(positions):
            batches += picked_rows(context, file, positions)
    return pa.Table.from_batches(batches, pa.schema(list(context.projection.arrow)))


# --- rows that come out


def _described(
    context: ChangeContext, batches: Iterable[pa.RecordBatch], kind: str, group: ChangeGroup
) -> Batches:
    """Yield rows with the columns that describe the change."""
    schema = raw_schema(context)
    for batch in batches:
        if batch.num_rows:
            columns = [batch.column(name) for name in context.names]
            if context.row_ids and not group.has_row_ids and (group.cancels or group.images):
                columns[-1] = pa.nulls(batch.num_rows, pa.int64())
            columns += _constants(group.commit, kind, batch.num_rows)
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _constants(commit: CommitMark, kind: str, size: int) -> list[Any]:
    values = (kind, commit.ordinal, commit.snapshot_id, commit.timestamp_ms * 1000)
    return [
        pa.repeat(pa.scalar(value, field.type), size)
        for value, field in zip(values, CHANGE_FIELDS, strict=True)
    ]
