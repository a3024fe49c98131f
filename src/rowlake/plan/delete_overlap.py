"""Whether a delete file can touch a data file at all, by the metrics of both.

Comes in: both tables. Goes out: tests of pairs (data rows, delete rows). A test is False only
where the metrics prove that no row of the data file is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.prune.column_facts import Facts, add_metrics, no_facts
from rowlake.prune.fact_sources import fields_outside_lists
from rowlake.prune.metrics import map_value

if TYPE_CHECKING:
    from rowlake.model.schema import Schema
    from rowlake.prune.row_ranges import PairTest

    Numbers = np.ndarray[Any, Any]

PATH_FIELD_ID = 2147483546
LOWEST, HIGHEST = -1, 1 << 62  # ranks of bounds that are not known


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
    lower, upper = (bound.take(pa.array(rows)) for bound in _path_bounds(deletes))
    if lower.null_count == len(rows) and upper.null_count == len(rows):
        return lambda data, _: np.ones(len(data), dtype=bool)
    places = _places(deletes, rows)
    paths, above, below = _ranks([locations.cast(pa.binary()), lower, upper])
    above[np.asarray(lower.is_null())] = LOWEST
    below[np.asarray(upper.is_null())] = HIGHEST

    def test(data: Numbers, delete: Numbers) -> Numbers:
        path, held = paths[data], places[delete]
        return np.asarray((above[held] <= path) & (path <= below[held]))

    return test


def _places(deletes: pa.Table, rows: Numbers) -> Numbers:
    """Return the position of each delete file among the chosen rows."""
    places = np.zeros(deletes.num_rows, dtype=np.int64)
    places[rows] = np.arange(len(rows))
    return places


def equality_overlap(
    data: pa.Table, deletes: pa.Table, rows: Numbers, ids: tuple[int, ...], schema: Schema
) -> PairTest:
    """Test whether nulls, NaNs or ranges of all equality columns meet."""
    usable = fields_outside_lists(schema)
    places = _places(deletes, rows)
    mine = deletes.take(rows)
    meetings = [
        _Meeting.of(_facts(data, schema, number), _facts(mine, schema, number))
        for number in ids
        if number in usable and not pa.types.is_nested(schema.by_id[number].type)
    ]

    def test(data_rows: Numbers, delete_rows: Numbers) -> Numbers:
        result = np.ones(len(data_rows), dtype=bool)
        held = places[delete_rows]
        for meeting in meetings:
            result &= meeting.test(data_rows, held)
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


_NULL, _NAN, _NUMBER = 1, 2, 4


@dataclass(frozen=True)
class _Meeting:
    """Where some value of a column may be on both sides: a null, a NaN, or one of the rest.

    `kinds` are bits; bounds are ranks in one order of them all, which are quick to compare.
    """

    kinds: tuple[Numbers, Numbers]
    lower: tuple[Numbers, Numbers]
    upper: tuple[Numbers, Numbers]

    @classmethod
    def of(cls, left: Facts, right: Facts) -> _Meeting:
        kinds = (_kinds(left), _kinds(right))
        if not left.spans or not right.spans:
            least = (np.zeros(left.size), np.zeros(right.size))
            return cls(kinds, least, least)
        mine, other = left.spans[0], right.spans[0]
        ranks = _ranks([mine.lower, other.lower, mine.upper, other.upper])
        for rank, bound in zip(ranks[:2], (mine.lower, other.lower), strict=True):
            rank[np.asarray(bound.is_null())] = LOWEST
        for rank, bound in zip(ranks[2:], (mine.upper, other.upper), strict=True):
            rank[np.asarray(bound.is_null())] = HIGHEST
        return cls(kinds, (ranks[0], ranks[1]), (ranks[2], ranks[3]))

    def test(self, rows: Numbers, others: Numbers) -> Numbers:
        both = self.kinds[0][rows] & self.kinds[1][others]
        overlap = self.lower[0][rows] <= self.upper[1][others]
        overlap &= self.lower[1][others] <= self.upper[0][rows]
        return np.asarray((both & (_NULL | _NAN) != 0) | ((both & _NUMBER != 0) & overlap))


def _kinds(facts: Facts) -> Numbers:
    bits = facts.may_null * _NULL + facts.may_nan * _NAN + ~facts.no_numbers * _NUMBER
    return np.asarray(bits, dtype=np.uint8)


def _ranks(bounds: list[pa.Array]) -> list[Numbers]:
    """Return the ranks of all values in one order; those of nulls mean nothing."""
    values = pa.concat_arrays(bounds)
    if pa.types.is_floating(values.type):
        values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 is 0.0
    ranks = np.asarray(pc.rank(values, tiebreaker="dense")).astype(np.int64)
    return np.split(ranks, np.cumsum([len(bound) for bound in bounds])[:-1])
