"""Whether a delete file can touch a data file at all, by the metrics of both.

Comes in: both tables. Goes out: tests of pairs (data rows, delete rows). A test is False only
where the metrics prove that no row of the data file is deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.plan.facts import Facts, Span, add_metrics, no_facts
from rowlake.plan.metrics import map_value
from rowlake.plan.sources import fields_outside_lists

if TYPE_CHECKING:
    from rowlake.model.schema import Schema
    from rowlake.plan.ranges import PairTest

    Numbers = np.ndarray[Any, Any]

PATH_FIELD_ID = 2147483546


def single_paths(deletes: pa.Table) -> pa.Array:
    """Return the path that both bounds of `file_path` name, null where they are not one."""
    lower, upper = _path_bounds(deletes)
    same = pc.equal(lower, upper).fill_null(False)
    return pc.if_else(same, lower, pa.scalar(None, pa.binary())).cast(pa.string())


def _path_bounds(deletes: pa.Table) -> tuple[pa.Array, pa.Array]:
    names = ("lower_bounds", "upper_bounds")
    if not set(names) <= set(deletes.column_names):
        return pa.nulls(deletes.num_rows, pa.binary()), pa.nulls(deletes.num_rows, pa.binary())
    lower, upper = (map_value(deletes.column(name), PATH_FIELD_ID) for name in names)
    return lower, upper


def path_overlap(locations: pa.Array, deletes: pa.Table, rows: Numbers) -> PairTest:
    """Test whether a data file's location is between the bounds of a position delete's paths."""
    lower, upper = _path_bounds(deletes)
    paths = locations.cast(pa.binary())
    known = lower.take(pa.array(rows)).null_count < len(rows)

    def test(data: Numbers, delete: Numbers) -> Numbers:
        if not known:
            return np.ones(len(data), dtype=bool)
        path = paths.take(pa.array(data))
        above = pc.less_equal(lower.take(pa.array(delete)), path).fill_null(True)
        below = pc.greater_equal(upper.take(pa.array(delete)), path).fill_null(True)
        return np.asarray(pc.and_(above, below))

    return test


def equality_overlap(
    data: pa.Table, deletes: pa.Table, rows: Numbers, ids: tuple[int, ...], schema: Schema
) -> PairTest:
    """Test whether nulls, NaNs or ranges of all equality columns meet."""
    usable = fields_outside_lists(schema)
    places = np.full(deletes.num_rows, -1, dtype=np.int64)
    places[rows] = np.arange(len(rows))
    mine = deletes.take(rows)
    sides = [
        (_facts(data, schema, number), _facts(mine, schema, number))
        for number in ids
        if number in usable and not pa.types.is_nested(schema.by_id[number].type)
    ]

    def test(data_rows: Numbers, delete_rows: Numbers) -> Numbers:
        result = np.ones(len(data_rows), dtype=bool)
        held = places[delete_rows]
        for of_data, of_deletes in sides:
            result &= _meet(of_data, data_rows, of_deletes, held)
        return result

    return test


def _facts(table: pa.Table, schema: Schema, number: int) -> Facts:
    """Return the facts of a column; nulls of a parent may not be counted, so they may be there."""
    column = schema.by_id[number]
    facts = no_facts(table.num_rows, column)
    add_metrics(facts, table, column, number)
    if fields_outside_lists(schema)[number]:
        facts.may_null[:] = True
    return facts


def _meet(left: Facts, rows: Numbers, right: Facts, others: Numbers) -> Numbers:
    """Return where some value may be on both sides: a null, a NaN, or one of the rest."""
    nulls = left.may_null[rows] & right.may_null[others]
    nans = left.may_nan[rows] & right.may_nan[others]
    numbers = ~left.no_numbers[rows] & ~right.no_numbers[others]
    for mine, other in zip(left.spans, right.spans, strict=True):
        numbers &= _spans_meet(_taken(mine, rows), _taken(other, others))
    return np.asarray(nulls | nans | numbers)


def _taken(span: Span, rows: Numbers) -> Span:
    places = pa.array(rows)
    return Span(span.lower.take(places), span.upper.take(places))


def _spans_meet(left: Span, right: Span) -> Numbers:
    first = pc.less_equal(left.lower, right.upper).fill_null(True)
    second = pc.less_equal(right.lower, left.upper).fill_null(True)
    return np.asarray(pc.and_(first, second))
