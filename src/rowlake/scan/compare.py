"""Leaf tests over arrays, with Spark's meaning.

Comes in: an array of the table's type and one leaf of a bound predicate. Goes out: a boolean
array that is null where SQL's answer is NULL. NaN equals NaN and is larger than any number,
-0.0 equals 0.0; text and bytes compare by unsigned bytes, as Arrow does.
"""

from __future__ import annotations

import math
import uuid
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rowlake.model.predicate import Op
from rowlake.model.transform import apply_transform

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.model.predicate import Leaf

_PLAIN: dict[Op, Callable[..., pa.BooleanArray]] = {
    Op.EQ: pc.equal,
    Op.NE: pc.not_equal,
    Op.LT: pc.less,
    Op.LE: pc.less_equal,
    Op.GT: pc.greater,
    Op.GE: pc.greater_equal,
}


def test(array: pa.Array, leaf: Leaf) -> pa.BooleanArray:
    """Return where the leaf holds: true, false, or null for NULL."""
    if leaf.transform is not None:
        array = apply_transform(leaf.transform, array)
    if leaf.op is Op.IS_NULL:
        return pc.is_null(array)
    if leaf.op is Op.NOT_NULL:
        return pc.is_valid(array)
    if leaf.op in (Op.IS_NAN, Op.NOT_NAN):
        return _nan(array, negated=leaf.op is Op.NOT_NAN)
    if leaf.op in (Op.IN, Op.NOT_IN):
        found = _in(array, leaf)
        return pc.invert(found) if leaf.op is Op.NOT_IN else found
    if leaf.op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        found = pc.starts_with(array, pattern=leaf.value)
        return pc.invert(found) if leaf.op is Op.NOT_STARTS_WITH else found
    return compare(array, leaf.op, scalar(leaf.value, array.type))


def compare(array: pa.Array, op: Op, value: pa.Scalar) -> pa.BooleanArray:
    """Return where the comparison holds."""
    if not pt.is_floating(array.type):
        return _PLAIN[op](array, value)
    if math.isnan(value.as_py()):
        return _compare_with_nan(array, op)
    plain = _PLAIN[op](array, value)
    return pc.or_(plain, pc.is_nan(array)) if op in (Op.GT, Op.GE) else plain


def scalar(value: Any, arrow_type: pa.DataType) -> pa.Scalar:
    """Return a predicate's value as the column's type, or as its own where that cannot hold it."""
    if isinstance(value, str) and pt.is_fixed_size_binary(arrow_type):
        value = uuid.UUID(value)
    plain = value.bytes if isinstance(value, uuid.UUID) else value
    try:
        return pa.scalar(plain, arrow_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.scalar(plain)


def _compare_with_nan(array: pa.Array, op: Op) -> pa.BooleanArray:
    """Return how the values compare with NaN, the largest of all."""
    is_nan = pc.is_nan(array)
    if op in (Op.EQ, Op.GE):
        return is_nan
    if op in (Op.NE, Op.LT):
        return pc.invert(is_nan)
    never = pc.and_(is_nan, False)
    return never if op is Op.GT else pc.invert(never)


def _nan(array: pa.Array, *, negated: bool) -> pa.BooleanArray:
    """Return where values are NaN; null is not, as in Spark and Iceberg."""
    if not pt.is_floating(array.type):
        return pa.repeat(pa.scalar(negated), len(array))
    found = pc.fill_null(pc.is_nan(array), False)
    return pc.invert(found) if negated else found


def _in(array: pa.Array, leaf: Leaf) -> pa.BooleanArray:
    if pt.is_floating(array.type):
        return _float_in(array, leaf)
    values = [scalar(value, array.type) for value in leaf.values]
    held = [value for value in values if value.type.equals(array.type)]
    found = pc.is_in(array, value_set=pa.array(_plain(held), array.type))
    return pc.if_else(pc.is_valid(array), found, None)


def _float_in(array: pa.Array, leaf: Leaf) -> pa.BooleanArray:
    """Return membership; NaN and zeros are tested separately, since hashing distinguishes zeros."""
    numbers = [float(value) + 0.0 for value in leaf.values if not math.isnan(value)]
    wide = pc.add(array.cast(pa.float64()), 0.0)
    found = [pc.is_in(wide, value_set=pa.array(numbers, pa.float64()))]
    if len(numbers) < len(leaf.values):
        found.append(pc.is_nan(wide))
    return pc.if_else(pc.is_valid(array), reduce(pc.or_kleene, found), None)


def _plain(values: list[pa.Scalar]) -> list[Any]:
    """Return what `pa.array` takes; nanoseconds must not pass through `datetime`."""
    return [value.value if pt.is_timestamp(value.type) else value.as_py() for value in values]
