"""Which rows of a data file that stays a commit deleted, or brought back.

Comes in: the file with the deletes that applied before and after. Goes out: candidates by
position, with the file as their rows are to be read: deletes by value that decide which candidates
count are left to the scan. Key columns are read where equality deletes came, and only of row groups
that can hold one of their keys.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rowlake.model.distinct import distinct
from rowlake.model.feed import DELETE, INSERT
from rowlake.model.files import Content
from rowlake.model.predicate import FALSE, TRUE, Leaf, Op, Predicate, conjunction, disjunction
from rowlake.model.schema import FIELD_ID, Schema, field_id
from rowlake.model.task import (
    DELETED_COLUMN,
    DELETED_COLUMN_ID,
    POS_COLUMN,
    POS_COLUMN_ID,
    ScanTask,
)
from rowlake.prune.bind import bind
from rowlake.scan.deletes import deleted_keys, positions_in
from rowlake.scan.kernel import scan_kernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from rowlake.model.files import DeleteFile
    from rowlake.model.task import FileTask, ScanContext
    from rowlake.storage.files import Storage
    from rowlake.stream.changes_task import MarkedFile

    Positions = NDArray[np.int64]

# Up to this many keys, row groups are tested by each; else by the least and the greatest.
MOST_TESTED_KEYS = 200

_PROJECTION = Schema(
    pa.schema(
        [
            pa.field(name, kind, metadata={FIELD_ID: str(identity).encode()})
            for name, kind, identity in (
                (POS_COLUMN, pa.int64(), POS_COLUMN_ID),
                (DELETED_COLUMN, pa.bool_(), DELETED_COLUMN_ID),
            )
        ]
    )
)


def changed_positions(
    context: ScanContext, marked: MarkedFile, storage: Storage
) -> Iterator[tuple[FileTask, Positions, str]]:
    """Yield (file, sorted positions, kind of change): rows of the file at them are changes."""
    before, after = marked.before, marked.after
    for old, new, kind in ((before, after, DELETE), (after, before, INSERT)):
        positions = _candidates(context, old, new, storage)
        if len(positions):
            yield replace(old, deletes=_by_value(old.deletes)), positions, kind


def _candidates(context: ScanContext, old: FileTask, new: FileTask, storage: Storage) -> Positions:
    """Return rows that deletes of `new` hit and those of `old` do not, but for deletes by value."""
    known = {delete.key for delete in old.deletes}
    more = tuple(delete for delete in new.deletes if delete.key not in known)
    if not more:
        return np.empty(0, np.int64)
    marks = positions_in(new.deletes, new.location, storage)
    hits = _hits(context, replace(new, deletes=_by_value(more)), storage)
    gone = positions_in(old.deletes, old.location, storage)
    return np.setdiff1d(distinct(marks, hits), gone, assume_unique=True)


def _by_value(deletes: Sequence[DeleteFile]) -> tuple[DeleteFile, ...]:
    return tuple(each for each in deletes if each.content is Content.EQUALITY_DELETES)


def _hits(context: ScanContext, file: FileTask, storage: Storage) -> Positions:
    """Return the positions of rows that the file's equality deletes hit."""
    found = [np.empty(0, np.int64)]
    if file.deletes:
        predicate = conjunction(context.predicate or TRUE, _hit(context, file.deletes, storage))
        keys = replace(context, projection=_PROJECTION, predicate=predicate, exact=False)
        for batch in scan_kernel(ScanTask(keys, (file,))):
            positions, deleted = (np.asarray(column) for column in batch.columns)
            found.append(positions[deleted.astype(np.bool_)])
    return np.concatenate(found)


def _hit(context: ScanContext, deletes: Sequence[DeleteFile], storage: Storage) -> Predicate:
    """Return what every row satisfies that some of the deletes hit."""
    by_columns: dict[pa.Schema, list[pa.Table]] = {}
    for keys in deleted_keys(context, deletes, storage):
        by_columns.setdefault(keys.schema, []).append(keys)
    parts = []
    for tables in by_columns.values():
        keys = pa.concat_tables(tables)
        parts.append(conjunction(*(_test(context, keys, name) for name in keys.column_names)))
    return bind(disjunction(*parts), context.table_schema)


def _test(context: ScanContext, keys: pa.Table, name: str) -> Predicate:
    """Return what rows with one of the keys satisfy in a column; TRUE where that is not certain."""
    field = context.table_schema.by_id.get(field_id(keys.schema.field(name)) or -1)
    values = keys[name]
    if field is None or not field.type.equals(values.type) or not _is_simple(values.type):
        return TRUE
    tests: list[Predicate] = [Leaf((name,), Op.IS_NULL)] if values.null_count else []
    held = values.drop_null().unique()
    if len(held) > MOST_TESTED_KEYS:
        limits = pc.min_max(held).as_py()
        least, greatest = (
            Leaf((name,), op, (limits[end],)) for op, end in ((Op.GE, "min"), (Op.LE, "max"))
        )
        tests.append(conjunction(least, greatest))
    elif len(held):
        tests.append(Leaf((name,), Op.IN, tuple(held.to_pylist())))
    return disjunction(*tests) if tests else FALSE


def _is_simple(kind: pa.DataType) -> bool:
    """Return whether equality means the same to deletes and to predicates."""
    return bool(pt.is_integer(kind) or pt.is_string(kind) or pt.is_date32(kind))
