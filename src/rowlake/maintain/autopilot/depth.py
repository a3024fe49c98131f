"""How well files are told apart by a column: how many files hold a value, by their bounds.

Comes in: a `Survey`. Goes out: `Depth`s, 1.0 being best: a look for one value opens one file of its
partition. The value looked for is the middle of a file's range, files weighing by their rows, so
the average is about that of a look for a row picked at random. Partitions are taken one by one:
what they keep apart no sorting brings together. Files of a single value are left out (as far as
bounds tell, which cut long texts short): no sorting tells them apart, so a sorted table is at 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.schema import field_id
from rowlake.model.transform import apply_transform
from rowlake.prune.column_facts import add_metrics, no_facts
from rowlake.prune.fact_sources import fields_outside_lists

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.maintain.autopilot.survey import Survey
    from rowlake.model.partition import SortField

    Numbers = np.ndarray[Any, Any]

# Without a sort order: queries mostly filter by what comes first, and each column costs a pass.
FIRST_COLUMNS = 4
# Where fewer files have bounds of a column, they say little of the table.
LEAST_KNOWN = 0.5
_NO_ORDER = ("bucket", "void")
_WORD = 8
_CUT = 16  # Iceberg's default length of bounds of texts: truncate(16)
_FAR = 1e300  # stands for what is infinite, which has no middle


@dataclass(frozen=True)
class Depth:
    """One column: the average number of files that hold a value, of so many that were compared."""

    column: str
    average: float
    files: int


@dataclass(frozen=True)
class Spans:
    """The bounds of one column, or of a transform of it, per data file; null where not known."""

    column: str
    lower: pa.Array
    upper: pa.Array

    @property
    def known(self) -> Numbers:
        """True for each file that has both bounds."""
        return np.asarray(pc.and_(self.lower.is_valid(), self.upper.is_valid()))

    def as_numbers(self, wanted: Numbers) -> tuple[Numbers, Numbers]:
        """Return the bounds of the wanted files, all of them known, as floats in the same order."""
        chosen = pa.array(wanted)
        return _as_numbers(self.lower.filter(chosen), self.upper.filter(chosen))


def sort_depth(survey: Survey) -> Depth | None:
    """Return the depth of the first sort key that partitions do not fix.

    None without one, and where bounds of the column say nothing of the key's order (`bucket`).
    """
    key = sort_key(survey)
    return None if key is None else depth_of(survey, key.source_id, key.transform)


def sort_key(survey: Survey) -> SortField | None:
    """Return the first sort key that partitions do not fix, None where bounds know no order."""
    fixed = {
        part.source_id
        for spec_id in survey.plan.data
        for part in survey.view.specs[spec_id].fields
        if part.transform == "identity"
    }
    for key in survey.view.sort_order.fields:
        if key.source_id not in fixed:
            return None if key.transform.startswith(_NO_ORDER) else key
    return None


def best_depth(survey: Survey) -> Depth | None:
    """Return the least depth among the first columns that have bounds, None where none has."""
    found = []
    for number in plain_columns(survey):
        depth = depth_of(survey, number)
        if depth is not None:
            found.append(depth)
        if len(found) == FIRST_COLUMNS:
            break
    return min(found, key=lambda each: each.average, default=None)


def plain_columns(survey: Survey) -> Iterator[int]:
    """Yield the ids of the columns that are not nested."""
    for column in survey.view.schema.arrow:
        number = field_id(column)
        if number is not None and not pa.types.is_nested(column.type):
            yield number


def depth_of(survey: Survey, number: int, transform: str = "identity") -> Depth | None:
    """Return the depth of one column, or of a transform that keeps its order.

    None where too few files have bounds of it.
    """
    spans = spans_of(survey, number, transform)
    if spans is None:
        return None
    known, lower, upper = spans.known, spans.lower, spans.upper
    if known.sum() < max(LEAST_KNOWN * survey.count, 1):
        return None
    wide = known & ~_is_one_value(lower, upper)
    depths = np.ones(survey.count)
    depths[wide] = _depths(*spans.as_numbers(wide), survey.partitions[wide])
    weights = np.maximum(survey.rows[known], 1)
    average = float(np.average(depths[known], weights=weights))
    return Depth(spans.column, average, int(known.sum()))


def spans_of(survey: Survey, number: int, transform: str = "identity") -> Spans | None:
    """Return the bounds of one column per data file, None where there are none at all."""
    column = survey.view.schema.by_id.get(number)
    if column is None or number not in fields_outside_lists(survey.view.schema):
        return None
    spans = [_span(table, column, number) for table in survey.plan.data.values()]
    if not spans or any(span is None for span in spans):
        return None
    lower, upper = (
        apply_transform(transform, pa.concat_arrays(list(side)))
        for side in zip(*spans, strict=True)
    )
    return Spans(".".join(survey.view.schema.paths[number]), lower, upper)


def _is_one_value(lower: pa.Array, upper: pa.Array) -> Numbers:
    """Return True for each file whose bounds are one value, or one text that was cut short."""
    same = pc.equal(lower, upper)
    if pa.types.is_binary(lower.type):
        heads = (pc.binary_slice(bound, 0, _CUT - 1) for bound in (lower, upper))
        cut = pc.greater_equal(pc.binary_length(lower), _CUT)
        same = pc.or_(same, pc.and_(pc.equal(*heads), cut))
    return np.asarray(same.fill_null(False))


def _span(table: pa.Table, column: pa.Field, number: int) -> tuple[pa.Array, pa.Array] | None:
    facts = no_facts(table.num_rows, column)
    add_metrics(facts, table, column, number)
    return (facts.spans[0].lower, facts.spans[0].upper) if facts.spans else None


def _as_numbers(lower: pa.Array, upper: pa.Array) -> tuple[Numbers, Numbers]:
    """Return bounds as floats in the same order, near enough for an average."""
    kind = lower.type
    if pa.types.is_binary(kind):
        shared = _shared_prefix(lower, upper)
        return _words(lower, shared), _words(upper, shared)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_integer(kind):
        return _floats(lower), _floats(upper)
    whole = pa.int32() if kind.bit_width == 32 else pa.int64()
    return _floats(lower.view(whole)), _floats(upper.view(whole))


def _floats(values: pa.Array) -> Numbers:
    floats = np.asarray(pc.cast(values, pa.float64(), safe=False))
    return np.asarray(np.clip(floats, -_FAR, _FAR))


def _shared_prefix(lower: pa.Array, upper: pa.Array) -> int:
    least, greatest = pc.min(lower).as_py() or b"", pc.max(upper).as_py() or b""
    same = (one == other for one, other in zip(least, greatest, strict=False))
    count = 0
    for equal in same:
        if not equal:
            break
        count += 1
    return count


def _words(values: pa.Array, shared: int) -> Numbers:
    """Return the bytes after a shared prefix as numbers: big-endian, zeros at the end."""
    rest = pc.binary_slice(values, shared, shared + _WORD)
    padded = pc.binary_join_element_wise(rest, pa.scalar(b"\0" * _WORD), pa.scalar(b""))
    words = pc.binary_slice(padded, 0, _WORD)
    joined = pa.concat_arrays([words])  # offsets that begin at 0
    raw = np.frombuffer(joined.buffers()[2] or b"", dtype=np.uint8)[: len(words) * _WORD]
    return raw.view(">u8").astype(np.float64)


def _depths(least: Numbers, greatest: Numbers, groups: Numbers) -> Numbers:
    """Return, per file, how many files of its group have the middle of its range in theirs."""
    middle = least / 2 + greatest / 2
    values, ranks = np.unique(np.concatenate([least, greatest, middle]), return_inverse=True)
    low, high, mid = (groups * len(values) + part for part in np.split(ranks.astype(np.int64), 3))
    starts, ends, first = np.sort(low), np.sort(high), groups * len(values)
    begun = np.searchsorted(starts, mid, side="right") - np.searchsorted(starts, first)
    over = np.searchsorted(ends, mid, side="left") - np.searchsorted(ends, first)
    return np.asarray(begun - over)
