"""The real keys of a source, as a predicate on the target's columns.

A target row can only match where each of its key columns holds a key of the source. That prunes
files and row groups, and it is what a concurrent commit must not add matching rows to. A small
source gives its set of keys, a large one the range from the least to the greatest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.predicate import FALSE, TRUE, Leaf, Op, Predicate, conjunction
from rowlake.model.values import decode
from rowlake.rowlevel.staged import pieces_of, read_pieces

if TYPE_CHECKING:
    from rowlake.model.schema import Schema
    from rowlake.rowlevel.operation import RowChange, Staged
    from rowlake.storage.files import Storage

# Rows of a source whose keys are listed one by one.
FEW_ROWS = 1000


def source_keys(change: RowChange, schema: Schema, storage: Storage) -> Predicate:
    """Return what every matching target row satisfies; FALSE for a source without rows."""
    staged, matching = change.staged, change.matching
    if staged is None:
        return TRUE
    if not staged.rows.num_rows:
        return FALSE
    known = [
        (number, target, name)
        for number, (target, name) in enumerate(matching.keys)
        if name in staged.keys and not matching.null_safe[number]
    ]
    if not known:
        return TRUE
    if pc.sum(staged.rows["rows"]).as_py() > FEW_ROWS:
        return conjunction(*(_range(staged, number, target, schema) for number, target, _ in known))
    rows = read_pieces(pieces_of(staged.rows), staged.schema, storage)
    return conjunction(*(_set(rows[name], target, schema) for _, target, name in known))


def _set(keys: pa.ChunkedArray, target: str, schema: Schema) -> Predicate:
    if _is_unordered(keys.type):
        return TRUE
    kind = schema.arrow.field(target).type
    # A key that does not fit the column matches no row of it.
    found = [key for key in pc.unique(keys.drop_null()).to_pylist() if _fits(key, kind)]
    return Leaf((target,), Op.IN, tuple(found)) if found else FALSE


def _is_unordered(kind: pa.DataType) -> bool:
    """Return whether values have no usual order (NaN lies outside of every range)."""
    return bool(pa.types.is_nested(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind))


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
