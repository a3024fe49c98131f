"""One leaf of a predicate against the facts of its column: where some row may make it true.

Values fall in three kinds: nulls, NaNs, and the rest ("numbers", whatever their type), which
alone the spans bound. NaN is above every number, as in Spark; bound predicates have no NaN among
their literals (`rowlake.prune.bind` turns those into tests for NaN).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.predicate import Leaf, Op
from rowlake.model.transform import apply_transform, result_type
from rowlake.prune.column_facts import Facts, Span, comparable
from rowlake.prune.partition_spans import ABOVE_TEXT

if TYPE_CHECKING:
    from collections.abc import Callable

    Flags = np.ndarray[Any, np.dtype[np.bool_]]

FEW = 8  # literals of an IN list that are compared one by one


def may_hold(leaf: Leaf, facts: Facts) -> Flags:
    """Return where some row may make the leaf true."""
    if leaf.transform is not None:
        facts = _facts_of_transform(leaf.transform, facts)
    if leaf.op in _OF_KINDS:
        return _OF_KINDS[leaf.op](facts)
    literals = _literals(leaf, facts.kind)
    number_holds = ~facts.no_numbers & _OF_NUMBERS[leaf.op](facts, literals)
    return number_holds | facts.may_nan if leaf.op in _TRUE_OF_NAN else number_holds


def _facts_of_transform(transform: str, facts: Facts) -> Facts:
    """Return what partition values say of a transform of a column: only the same one says any."""
    spans = [Span(least, most) for held, least, most in facts.buckets if held == transform]
    kind = result_type(transform, facts.kind)
    return replace(facts, kind=kind, spans=spans, buckets=[])


def _literals(leaf: Leaf, kind: pa.DataType) -> pa.Array:
    values: list[Any] = list(leaf.values)
    if pa.types.is_fixed_size_binary(kind):
        return pa.array(values, pa.binary())
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        naive = [
            each.replace(tzinfo=None) if isinstance(each, dt.datetime) else each for each in values
        ]
        return pa.array(naive, pa.timestamp(kind.unit)).cast(kind)
    return comparable(pa.array(values, kind))


def _may(compare: Callable[..., Any], bound: pa.Array, value: pa.Scalar) -> Flags:
    """Return where a comparison with a bound holds, or the bound is not known."""
    return np.asarray(compare(bound, value).fill_null(True))


def _all_spans(facts: Facts, test: Callable[[Span], Flags]) -> Flags:
    result = np.ones(facts.size, dtype=bool)
    for span in facts.spans:
        result &= test(span)
    return result


def _less(facts: Facts, literals: pa.Array) -> Flags:
    return _all_spans(facts, lambda span: _may(pc.less, span.lower, literals[0]))


def _less_equal(facts: Facts, literals: pa.Array) -> Flags:
    return _all_spans(facts, lambda span: _may(pc.less_equal, span.lower, literals[0]))


def _greater(facts: Facts, literals: pa.Array) -> Flags:
    return _all_spans(facts, lambda span: _may(pc.greater, span.upper, literals[0]))


def _greater_equal(facts: Facts, literals: pa.Array) -> Flags:
    return _all_spans(facts, lambda span: _may(pc.greater_equal, span.upper, literals[0]))


def _in(facts: Facts, literals: pa.Array) -> Flags:
    """Return where one of the literals may be among the numbers."""
    return _all_spans(facts, lambda span: _reaches(span, literals)) & _in_buckets(facts, literals)


def _reaches(span: Span, literals: pa.Array) -> Flags:
    if len(literals) > FEW:
        return _reaches_many(span, literals)
    result = np.zeros(len(span.lower), dtype=bool)
    for value in literals:
        above = _may(pc.less_equal, span.lower, value)
        result |= above & _may(pc.greater_equal, span.upper, value)
    return result


def _reaches_many(span: Span, literals: pa.Array) -> Flags:
    """Return where the first literal at or above the lower bound is not above the upper one."""
    ordered = np.sort(_sortable(literals))
    lower, upper = (bound.fill_null(literals[0]) for bound in (span.lower, span.upper))
    first = np.searchsorted(ordered, _sortable(lower))
    first[np.asarray(span.lower.is_null())] = 0
    found = first < len(ordered)
    nearest = ordered[np.minimum(first, len(ordered) - 1)]
    inside = np.asarray(nearest <= _sortable(upper), dtype=bool)
    result: Flags = found & (inside | np.asarray(span.upper.is_null()))
    return result


def _sortable(values: pa.Array) -> np.ndarray[Any, Any]:
    kind = values.type
    if pa.types.is_temporal(kind):
        narrow = values.cast(pa.int32()) if kind.bit_width == 32 else values
        return np.asarray(narrow.cast(pa.int64()))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.asarray(values)
    plain = np.empty(len(values), dtype=object)
    plain[:] = values.to_pylist()
    return plain


def _in_buckets(facts: Facts, literals: pa.Array) -> Flags:
    result = np.ones(facts.size, dtype=bool)
    for transform, least, greatest in facts.buckets:
        wanted = apply_transform(transform, literals).unique()
        result &= _reaches(Span(least, greatest), wanted)
    return result


def _not_in(facts: Facts, literals: pa.Array) -> Flags:
    """Return where the numbers may be other than one and the same literal."""
    return _all_spans(facts, lambda span: ~_is_one_of(span, literals))


def _is_one_of(span: Span, literals: pa.Array) -> Flags:
    single = pc.equal(span.lower, span.upper).fill_null(False)
    if len(literals) == 1:
        hit = pc.equal(span.lower, literals[0]).fill_null(False)
    else:
        hit = pc.is_in(span.lower, value_set=literals)
    return np.asarray(pc.and_(single, hit))


def _starts_with(facts: Facts, literals: pa.Array) -> Flags:
    above = _above(literals)
    return _less_equal(facts, above) & _greater_equal(facts, literals)


def _not_starts_with(facts: Facts, literals: pa.Array) -> Flags:
    above = _above(literals)
    return _all_spans(
        facts,
        lambda span: (
            _may(pc.less, span.lower, literals[0]) | _may(pc.greater, span.upper, above[0])
        ),
    )


def _above(prefix: pa.Array) -> pa.Array:
    return pa.array([prefix[0].as_py() + ABOVE_TEXT], pa.binary())


_OF_KINDS: dict[Op, Callable[[Facts], Flags]] = {
    Op.IS_NULL: lambda facts: facts.may_null,
    Op.NOT_NULL: lambda facts: ~facts.all_null,
    Op.IS_NAN: lambda facts: facts.may_nan,
    # True of null as well: Spark's isnan(NULL) is false, not NULL.
    Op.NOT_NAN: lambda facts: ~facts.no_numbers | facts.may_null,
}
_OF_NUMBERS: dict[Op, Callable[[Facts, pa.Array], Flags]] = {
    Op.EQ: _in,
    Op.NE: _not_in,
    Op.LT: _less,
    Op.LE: _less_equal,
    Op.GT: _greater,
    Op.GE: _greater_equal,
    Op.IN: _in,
    Op.NOT_IN: _not_in,
    Op.STARTS_WITH: _starts_with,
    Op.NOT_STARTS_WITH: _not_starts_with,
}
_TRUE_OF_NAN = {Op.NE, Op.NOT_IN, Op.GT, Op.GE}
