"""The real key ranges of a source, as a predicate on the target's columns.

A target row can only match where each of its key columns lies between the least and the greatest
source key. That prunes files and row groups, and it is what a concurrent commit must not add
matching rows to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.predicate import FALSE, TRUE, Leaf, Op, Predicate, conjunction
from rowlake.model.values import decode

if TYPE_CHECKING:
    from rowlake.model.schema import Schema
    from rowlake.rowlevel.operation import RowChange, Staged


def source_ranges(change: RowChange, schema: Schema) -> Predicate:
    """Return what every matching target row satisfies; FALSE for a source without rows."""
    staged, matching = change.staged, change.matching
    if staged is None:
        return TRUE
    if not staged.rows.num_rows:
        return FALSE
    found = [
        _range(staged, number, target, schema)
        for number, (target, name) in enumerate(matching.keys)
        if name in staged.keys and not matching.null_safe[number]
    ]
    return conjunction(*found)


def _range(staged: Staged, number: int, target: str, schema: Schema) -> Predicate:
    kind = staged.schema.field(staged.keys[number]).type
    lower = _bounds(staged.rows["lower"], number, kind)
    upper = _bounds(staged.rows["upper"], number, kind)
    if lower is None or upper is None:
        return TRUE
    low, high = pc.min(lower).as_py(), pc.max(upper).as_py()
    field = schema.arrow.field(target)
    if not (_fits(low, field.type) and _fits(high, field.type)):
        return TRUE
    return conjunction(Leaf((target,), Op.GE, (low,)), Leaf((target,), Op.LE, (high,)))


def _bounds(bounds: pa.ChunkedArray, number: int, kind: pa.DataType) -> pa.Array | None:
    """Return the bounds of one key over all pieces; None where there are none (nulls, floats)."""
    encoded = pa.array([row[number] for row in bounds.to_pylist()], pa.binary()).drop_null()
    return decode(encoded, kind) if len(encoded) else None


def _fits(value: object, kind: pa.DataType) -> bool:
    try:
        pa.scalar(value, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return False
    return True
