"""Predicates over batches: which rows a bound predicate selects.

Comes in: a batch of table columns and a predicate. Goes out: a boolean array without nulls,
true where the predicate is TRUE (NULL selects nothing). Leaves are found by field id, or by
path where they have none.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import InternalError
from rowlake.model.predicate import And, Leaf
from rowlake.model.schema import children
from rowlake.scan.compare import test
from rowlake.scan.shape import path_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.model.predicate import Predicate


def mask(batch: pa.RecordBatch, predicate: Predicate) -> pa.BooleanArray:
    """Return which rows of a batch the predicate selects."""
    return pc.fill_null(truth(batch, predicate), False)


def truth(batch: pa.RecordBatch, predicate: Predicate) -> pa.BooleanArray:
    """Return the predicate's truth per row in SQL's three values."""
    if isinstance(predicate, Leaf):
        return test(column_of(batch, predicate), predicate)
    parts = [truth(batch, part) for part in predicate.parts]
    if isinstance(predicate, And):
        return reduce(pc.and_kleene, parts, pa.repeat(pa.scalar(True), batch.num_rows))
    return reduce(pc.or_kleene, parts, pa.repeat(pa.scalar(False), batch.num_rows))


def column_of(batch: pa.RecordBatch, leaf: Leaf) -> pa.Array:
    """Return a leaf's column; a field of a null struct is null."""
    path = _path(list(batch.schema), leaf)
    if path is None:
        raise InternalError(f"Column {'.'.join(leaf.path)} of a filter was not read.")
    array = batch.column(path[0])
    return array if len(path) == 1 else pc.struct_field(array, list(path[1:]))


def _path(fields: Sequence[pa.Field], leaf: Leaf) -> tuple[int, ...] | None:
    if leaf.field_id is not None:
        found = path_to(fields, leaf.field_id)
        if found is not None:
            return found
    return _path_by_name(fields, leaf.path)


def _path_by_name(fields: Sequence[pa.Field], names: tuple[str, ...]) -> tuple[int, ...] | None:
    for index, field in enumerate(fields):
        if field.name == names[0]:
            if len(names) == 1:
                return (index,)
            below = _path_by_name(children(field.type), names[1:])
            return None if below is None else (index, *below)
    return None
