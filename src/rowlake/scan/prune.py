"""Row groups that cannot match a predicate, by statistics and Bloom filters.

Comes in: what a Parquet footer says of some row groups, and a bound predicate. Goes out: which
row groups may hold a selected row; False is certain. Bounds of all row groups are arrays, so one
comparison serves them all. NaN is larger than any number but is not in Parquet's bounds: floats
never lose a row group to >, >=, != or NOT IN.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.types as pt

from rowlake.model.predicate import And, Leaf, Op
from rowlake.scan.compare import scalar, test
from rowlake.scan.statistics import MANY_VALUES

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from numpy.typing import NDArray

    from rowlake.model.predicate import Predicate
    from rowlake.scan.statistics import Bounds, RowGroupStatistics


def may_match(statistics: RowGroupStatistics, predicate: Predicate) -> NDArray[np.bool_]:
    """Return which row groups may hold a row that the predicate selects."""
    count = len(statistics.units)
    if isinstance(predicate, Leaf):
        return _leaf_may_match(statistics, predicate)
    parts = [may_match(statistics, part) for part in predicate.parts]
    if isinstance(predicate, And):
        return reduce(np.logical_and, parts, np.ones(count, np.bool_))
    return reduce(np.logical_or, parts, np.zeros(count, np.bool_))


def _leaf_may_match(statistics: RowGroupStatistics, leaf: Leaf) -> NDArray[np.bool_]:
    everywhere = np.ones(len(statistics.units), np.bool_)
    constant = statistics.constant(leaf)
    if constant is not None:
        return everywhere & bool(test(constant, leaf)[0].as_py())
    if leaf.transform is not None:
        return everywhere
    bounds = statistics.bounds(leaf)
    kept = everywhere if bounds is None else _TESTS[leaf.op](bounds, leaf)
    return statistics.may_hold(leaf, kept) if leaf.op in (Op.EQ, Op.IN) else kept


def _may(bounds: Bounds, *conditions: pa.Array) -> NDArray[np.bool_]:
    """Return where all conditions hold or are unknown, and some value is there."""
    held = reduce(pc.and_kleene, conditions)
    return np.asarray(pc.fill_null(held, True)) & ~bounds.only_nulls


def _some_value(bounds: Bounds) -> NDArray[np.bool_]:
    return ~bounds.only_nulls


def _equal(bounds: Bounds, leaf: Leaf) -> NDArray[np.bool_]:
    return _holds(bounds, leaf.value)


def _holds(bounds: Bounds, value: Any) -> NDArray[np.bool_]:
    if _is_nan(value):
        return _some_value(bounds)
    wanted = scalar(value, bounds.lower.type)
    within = pc.less_equal(bounds.lower, wanted), pc.greater_equal(bounds.upper, wanted)
    return _may(bounds, *within)


def _not_equal(bounds: Bounds, leaf: Leaf) -> NDArray[np.bool_]:
    """Return where not all values are the one value, or one of the values."""
    if pt.is_floating(bounds.lower.type):
        return _some_value(bounds)
    single = pc.equal(bounds.lower, bounds.upper)
    inside = Leaf(leaf.path, Op.IN, leaf.values, leaf.field_id)
    return _may(bounds, pc.invert(pc.and_kleene(single, test(bounds.lower, inside))))


def _below(bounds: Bounds, leaf: Leaf) -> NDArray[np.bool_]:
    if _is_nan(leaf.value):
        return _some_value(bounds)
    compare = pc.less if leaf.op is Op.LT else pc.less_equal
    return _may(bounds, compare(bounds.lower, scalar(leaf.value, bounds.lower.type)))


def _above(bounds: Bounds, leaf: Leaf) -> NDArray[np.bool_]:
    if pt.is_floating(bounds.lower.type):
        return _some_value(bounds)
    compare = pc.greater if leaf.op is Op.GT else pc.greater_equal
    return _may(bounds, compare(bounds.upper, scalar(leaf.value, bounds.upper.type)))


def _in(bounds: Bounds, leaf: Leaf) -> NDArray[np.bool_]:
    if any(map(_is_nan, leaf.values)):
        return _some_value(bounds)
    if len(leaf.values) > MANY_VALUES:
        low, high = min(leaf.values), max(leaf.values)
        below = pc.less_equal(bounds.lower, scalar(high, bounds.lower.type))
        return _may(bounds, below, pc.greater_equal(bounds.upper, scalar(low, bounds.upper.type)))
    held = [_holds(bounds, value) for value in leaf.values]
    return reduce(np.logical_or, held, np.zeros(len(bounds.nulls), np.bool_))


def _null(bounds: Bounds, leaf: Leaf) -> NDArray[np.bool_]:  # noqa: ARG001
    found: NDArray[np.bool_] = bounds.nulls != 0
    return found


def _not_null(bounds: Bounds, leaf: Leaf) -> NDArray[np.bool_]:  # noqa: ARG001
    return _some_value(bounds)


def _nan(bounds: Bounds, leaf: Leaf) -> NDArray[np.bool_]:  # noqa: ARG001
    return _some_value(bounds) & bool(pt.is_floating(bounds.lower.type))


def _anything(bounds: Bounds, leaf: Leaf) -> NDArray[np.bool_]:  # noqa: ARG001
    return np.ones(len(bounds.nulls), np.bool_)


def _starts_with(bounds: Bounds, leaf: Leaf) -> NDArray[np.bool_]:
    prefix = scalar(leaf.value, bounds.lower.type)
    reaches = pc.greater_equal(bounds.upper, prefix)
    not_past = pc.or_(
        pc.less_equal(bounds.lower, prefix), pc.starts_with(bounds.lower, pattern=leaf.value)
    )
    return _may(bounds, reaches, not_past)


def _not_starts_with(bounds: Bounds, leaf: Leaf) -> NDArray[np.bool_]:
    both = (pc.starts_with(limit, pattern=leaf.value) for limit in (bounds.lower, bounds.upper))
    return _may(bounds, pc.invert(reduce(pc.and_kleene, both)))


_TESTS: dict[Op, Callable[[Bounds, Leaf], Any]] = {
    Op.EQ: _equal,
    Op.NE: _not_equal,
    Op.LT: _below,
    Op.LE: _below,
    Op.GT: _above,
    Op.GE: _above,
    Op.IN: _in,
    Op.NOT_IN: _not_equal,
    Op.IS_NULL: _null,
    Op.NOT_NULL: _not_null,
    Op.IS_NAN: _nan,
    Op.NOT_NAN: _anything,
    Op.STARTS_WITH: _starts_with,
    Op.NOT_STARTS_WITH: _not_starts_with,
}


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
