"""New rows: columns of target rows and of source rows put together.

Comes in: rows of the target, the source row and the clause of each. Goes out: batches of the
columns that a write takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.task import LAST_UPDATED_COLUMN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rowlake.rowlevel.task import TaskClause

    Numbers = NDArray[np.int64]
    Flags = NDArray[np.bool_]


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(found, pa.ChunkedArray):
        return pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], found.type)
    return found


def typed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column as a type; Arrow's casts refuse null structs with required fields."""
    return column if column.type.equals(kind) else column.cast(kind)


def target_columns(schema: pa.Schema, clauses: Sequence[TaskClause]) -> list[pa.Field]:
    """Return the columns that some UPDATE leaves as they are: only these are read."""
    return [
        field
        for field in schema
        if field.name != LAST_UPDATED_COLUMN
        and any(field.name not in clause.values for clause in clauses)
    ]


def updated_rows(
    schema: pa.Schema,
    target: pa.RecordBatch,
    source: pa.Table,
    rows: Numbers,
    clauses: Sequence[tuple[TaskClause, Numbers]],
) -> pa.RecordBatch:
    """Return target rows as their clauses change them.

    `rows` has the source row of each; `clauses` says which (as places in `target`) each clause is
    for. A changed row takes the new snapshot's sequence number, so that column is null.
    """
    columns = []
    for field in schema:
        if field.name == LAST_UPDATED_COLUMN:
            columns.append(pa.nulls(target.num_rows, field.type))
            continue
        parts = [_values(field, clause, target, source, rows, places) for clause, places in clauses]
        columns.append(_merged(parts, [places for _, places in clauses]))
    return pa.RecordBatch.from_arrays(
        [typed(column, field.type) for column, field in zip(columns, schema, strict=True)],
        schema=pa.schema([field.with_nullable(True) for field in schema]),
    )


def _values(
    field: pa.Field,
    clause: TaskClause,
    target: pa.RecordBatch,
    source: pa.Table,
    rows: Numbers,
    places: Numbers,
) -> pa.Array:
    value = clause.values.get(field.name)
    whole = len(places) == target.num_rows
    if value is None:
        column = target.column(field.name)
        return column if whole else column.take(pa.array(places))
    return assigned(value, source, rows if whole else rows[places])


def assigned(value: str | pa.Array, source: pa.Table, rows: Numbers) -> pa.Array:
    """Return the new value of some rows: of their source rows, or one for all."""
    if isinstance(value, str):
        return one_array(source[value].take(pa.array(rows)))
    return value.take(pa.array(np.zeros(len(rows), np.int64)))


def _merged(parts: list[pa.Array], places: list[Numbers]) -> pa.Array:
    if len(parts) == 1:
        return parts[0]
    every = np.concatenate(places)
    back = np.empty(len(every), np.int64)
    back[every] = np.arange(len(every))
    return pa.concat_arrays(parts).take(pa.array(back))


def patched(batch: pa.RecordBatch, mask: Flags, new: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch in which the rows of the mask are replaced by others, in order."""
    size = batch.num_rows
    places = np.arange(size)
    places[mask] = size + np.arange(new.num_rows)
    taken = pa.array(places)
    columns = []
    for field, old in zip(batch.schema, batch.columns, strict=True):
        fresh = new.column(field.name)
        if pa.types.is_nested(old.type) or pa.types.is_null(old.type):
            columns.append(pa.concat_arrays([old, fresh]).take(taken))
        else:
            columns.append(pc.replace_with_mask(old, pa.array(mask), fresh))
    return pa.RecordBatch.from_arrays(columns, schema=new.schema)


def inserted_rows(
    schema: pa.Schema, source: pa.Table, rows: Numbers, clause: TaskClause
) -> pa.RecordBatch:
    """Return source rows as a clause inserts them; columns without a value are null."""
    columns = [
        typed(assigned(clause.values[field.name], source, rows), field.type)
        if field.name in clause.values
        else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    fields = [field.with_nullable(True) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def are_equal(one: pa.Array, other: pa.Array) -> Flags:
    """Return where two columns hold the same value; null is the same as null, NaN as NaN."""
    if pa.types.is_struct(one.type):
        same = np.asarray(pc.equal(one.is_valid(), other.is_valid()))
        for left, right in zip(one.flatten(), other.flatten(), strict=True):
            same = same & are_equal(left, right)
        return same
    if pa.types.is_nested(one.type):
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return np.array([left == right for left, right in pairs], np.bool_)
    if pa.types.is_null(one.type):
        return np.ones(len(one), np.bool_)
    equal = pc.fill_null(pc.equal(one, other), False)
    if pa.types.is_floating(one.type):
        equal = pc.or_(equal, pc.fill_null(pc.and_(pc.is_nan(one), pc.is_nan(other)), False))
    return np.asarray(pc.or_(equal, pc.and_(one.is_null(), other.is_null())))
