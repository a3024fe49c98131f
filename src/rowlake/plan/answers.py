"""Answers about whole columns from manifests, where they are exact.

Comes in: tables of data files to which no delete applies, with their metrics. Goes out: how many
rows there are, how many values of a column are not null, its least or greatest value. Manifests are
trusted, as Iceberg's own readers trust them. None where they are not enough:
- counts are missing, impossible (negative, more nulls than values), or do not cover the rows
  (nested columns, files older than the column);
- bounds of text and bytes, which may be shortened, and of files that are not Parquet, whose
  writers may round them;
- floats with NaN, which bounds leave out, and bounds of zero, which say nothing of its sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rowlake.model.schema import field_id
from rowlake.model.values import decode
from rowlake.plan.files import METRICS_COLUMNS, NAN_COLUMN
from rowlake.prune.metrics import map_value

if TYPE_CHECKING:
    from collections.abc import Sequence

# What `data` of a plan must have for the answers here.
NEEDED = (*METRICS_COLUMNS, NAN_COLUMN)
MOST_ROWS = 1 << 40  # of one file; a count beyond is not believed


def row_count(files: Sequence[pa.Table]) -> int | None:
    """Return how many rows the files have."""
    counts = [table["record_count"] for table in files]
    if not all(_all(_possible(each)) for each in counts):
        return None
    return sum(pc.sum(each).as_py() or 0 for each in counts)


def count_of(files: Sequence[pa.Table], field: pa.Field) -> int | None:
    """Return how many values of a column are not null."""
    known = [_filled(table, field) for table in files]
    if any(each is None for each in known):
        return None
    return sum(pc.sum(each).as_py() or 0 for each in known)


def bound_of(files: Sequence[pa.Table], field: pa.Field, *, greatest: bool) -> pa.Array | None:
    """Return the least or greatest value of a column as an array of one; null without values."""
    if not _has_exact_bounds(field.type):
        return None
    found = [
        _bounds(table, field, "upper_bounds" if greatest else "lower_bounds") for table in files
    ]
    if any(each is None for each in found):
        return None
    encoded = pa.concat_arrays([pa.array([], pa.binary()), *found])
    if pt.is_timestamp(field.type) and not _all(pc.equal(pc.binary_length(encoded), 8)):
        return None  # the bounds of a date that became a timestamp
    values = decode(encoded, field.type)
    bound = pc.max(values) if greatest else pc.min(values)
    if pt.is_floating(field.type) and bound.as_py() == 0:
        return None
    return pa.repeat(bound, 1)


def _possible(counts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.and_(pc.greater_equal(counts, 0), pc.less(counts, MOST_ROWS))


def _has_exact_bounds(kind: pa.DataType) -> bool:
    return bool(
        pt.is_signed_integer(kind)
        or pt.is_floating(kind)
        or pt.is_decimal(kind)
        or pt.is_boolean(kind)
        or pt.is_date32(kind)
        or pt.is_time64(kind)
        or pt.is_timestamp(kind)
    )


def _filled(table: pa.Table, field: pa.Field) -> pa.Array | None:
    """Return how many values of each file are not null; None where any file does not say."""
    number = field_id(field)
    if number is None:
        return None
    values = map_value(table["value_counts"], number)
    nulls = map_value(table["null_value_counts"], number)
    rows = table["record_count"].combine_chunks()
    whole = pc.and_(pc.equal(values, rows), _possible(rows))
    is_parquet = pc.equal(table["file_format"], "PARQUET")
    if nulls.null_count or not _all(whole) or not _all(is_parquet):
        return None
    possible = pc.and_(pc.greater_equal(nulls, 0), pc.less_equal(nulls, values))
    return pc.subtract(values, nulls) if _all(possible) else None


def _bounds(table: pa.Table, field: pa.Field, side: str) -> pa.Array | None:
    """Return the bounds of the files that have values; None where one is missing or not exact."""
    filled, number = _filled(table, field), field_id(field)
    if filled is None or number is None:
        return None
    has_values = pc.greater(filled, 0)
    if pt.is_floating(field.type):
        nans = map_value(table[NAN_COLUMN], number).filter(has_values)
        if not _all(pc.equal(nans, 0)):
            return None
    bounds = map_value(table[side], number).filter(has_values)
    return None if bounds.null_count else bounds.cast(pa.binary())


def _all(flags: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether all flags are True; null is not."""
    return bool(pc.all(pc.fill_null(flags, False), min_count=0).as_py())
