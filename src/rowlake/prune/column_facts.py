"""What is known of one column in each of many files (or manifests), from all recorded sources.

Comes in: metrics, partition values, or the partition summaries of manifests. Goes out: `Facts`,
arrays with one entry per file. Invariant: facts are never wrong, only weak: a bound that is not
known is null, "may have" is True and "has only" is False where nothing is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import UnsupportedFeatureError
from rowlake.model.schema import type_name
from rowlake.model.transform import Transform, parse_transform
from rowlake.model.values import decode
from rowlake.prune.metrics import list_value, map_value, one_array
from rowlake.prune.partition_spans import source_span

if TYPE_CHECKING:
    from rowlake.model.partition import PartitionSpec

    Flags = np.ndarray[Any, np.dtype[np.bool_]]

_NO_BOUNDS = ("variant", "geometry", "geography", "unknown")


@dataclass(frozen=True)
class Span:
    """The least and the greatest value that is neither null nor NaN, inclusive; null: not known."""

    lower: pa.Array
    upper: pa.Array

    def without(self, rows: pa.BooleanArray) -> Span:
        """Return the span with nothing known of these rows."""
        nothing = pa.scalar(None, self.lower.type)
        return Span(pc.if_else(rows, nothing, self.lower), pc.if_else(rows, nothing, self.upper))


@dataclass
class Facts:
    """What is known of a column; each list has one entry per source of knowledge.

    `buckets` are (transform, least bucket, greatest bucket). `no_numbers`: every value is null or
    NaN. All facts hold at once, so consumers may combine them freely.
    """

    size: int
    kind: pa.DataType
    may_null: Flags
    may_nan: Flags
    all_null: Flags
    no_numbers: Flags
    spans: list[Span] = field(default_factory=list)
    buckets: list[tuple[str, pa.Array, pa.Array]] = field(default_factory=list)

    @property
    def is_floating(self) -> bool:
        """True where values may be NaN."""
        return bool(pa.types.is_floating(self.kind))


def no_facts(size: int, column: pa.Field) -> Facts:
    """Return the facts of a column without any records."""
    floating = pa.types.is_floating(column.type)
    return Facts(
        size=size,
        kind=column.type,
        may_null=np.ones(size, dtype=bool),
        may_nan=np.full(size, floating),
        all_null=np.zeros(size, dtype=bool),
        no_numbers=np.zeros(size, dtype=bool),
    )


def comparable(values: pa.Array) -> pa.Array:
    """Return values in a form that Arrow orders as Iceberg does: text and bytes as binary."""
    kind = values.type
    if pa.types.is_boolean(kind):
        return values.cast(pa.int8())
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return values.cast(pa.large_binary()).cast(pa.binary())
    if pa.types.is_string(kind) or pa.types.is_fixed_size_binary(kind):
        return values.cast(pa.binary())
    return values


def add_metrics(facts: Facts, entries: pa.Table, column: pa.Field, field_id: int) -> None:
    """Add what the metrics of data files say of a column that is not inside a list or a map."""
    nulls, values, nans = (
        _counts(entries, name, field_id)
        for name in ("null_value_counts", "value_counts", "nan_value_counts")
    )
    facts.may_null &= nulls != 0
    all_null = (nulls >= 0) & (nulls == values)
    facts.all_null |= all_null
    facts.no_numbers |= all_null
    if facts.is_floating:
        facts.no_numbers |= (nans > 0) & (nulls >= 0) & (nulls + nans == values)
        facts.may_nan &= (nans != 0) & ~all_null
    span = _metrics_span(entries, column, field_id)
    if span is not None:
        facts.spans.append(span)


def _counts(entries: pa.Table, name: str, field_id: int) -> np.ndarray[Any, Any]:
    """Return counts, -1 where they are not recorded."""
    if name not in entries.column_names:
        return np.full(entries.num_rows, -1)
    return np.asarray(map_value(entries.column(name), field_id).fill_null(-1))


def _metrics_span(entries: pa.Table, column: pa.Field, field_id: int) -> Span | None:
    if pa.types.is_nested(column.type) or (type_name(column) or "").startswith(_NO_BOUNDS):
        return None
    if not {"lower_bounds", "upper_bounds"} <= set(entries.column_names):
        return None
    lower, upper = (
        decode(map_value(entries.column(name), field_id), _bound_type(column.type))
        for name in ("lower_bounds", "upper_bounds")
    )
    return _trusted(lower, upper, column)


def _bound_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of bounds: those of text and bytes, of fixed length too, may be cut short."""
    is_bytes = pa.types.is_fixed_size_binary(kind) or pa.types.is_large_binary(kind)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return pa.binary() if is_bytes or is_text else kind


def _trusted(lower: pa.Array, upper: pa.Array, column: pa.Field) -> Span:
    """Return bounds in comparable form, without those that cannot be relied on.

    A NaN bound is what some writers leave where they met NaN: both bounds are then worthless.
    UUIDs are ordered as signed halves by some writers and as bytes by others: bounds hold for
    both only where the first bits agree, widened to whole first halves.
    """
    if pa.types.is_floating(column.type):
        bad = pc.or_kleene(pc.is_nan(lower), pc.is_nan(upper)).fill_null(False)
        nothing = pa.scalar(None, column.type)
        return Span(pc.if_else(bad, nothing, lower), pc.if_else(bad, nothing, upper))
    if type_name(column) == "uuid":
        return _uuid_span(comparable(lower), comparable(upper))
    return Span(comparable(lower), comparable(upper))


def _uuid_span(lower: pa.Array, upper: pa.Array) -> Span:
    high_bit = pa.scalar(b"\x80")
    agree = pc.equal(pc.greater_equal(lower, high_bit), pc.greater_equal(upper, high_bit))
    agree = agree.fill_null(False)
    exact, nothing, none = pc.equal(lower, upper).fill_null(False), pa.scalar(b""), pa.scalar(None)
    starts, ends = (pc.binary_slice(bound, 0, 8) for bound in (lower, upper))
    widened = pc.binary_join_element_wise(ends, pa.scalar(b"\xff" * 8), nothing)
    low, high = (pc.if_else(agree, wide, none.cast(pa.binary())) for wide in (starts, widened))
    return Span(pc.if_else(exact, lower, low), pc.if_else(exact, upper, high))


def add_partitions(
    facts: Facts, partitions: pa.StructArray, spec: PartitionSpec, column: pa.Field, field_id: int
) -> None:
    """Add what native partition values say of a column."""
    for position, transform in _transforms_of(spec, field_id):
        values = pc.struct_field(partitions, [position])
        missing = np.asarray(values.is_null())
        facts.may_null &= missing
        facts.all_null |= missing
        facts.no_numbers |= missing
        if facts.is_floating:
            nan = pc.is_nan(values).fill_null(False)
            facts.may_nan &= np.asarray(nan)
            facts.no_numbers |= np.asarray(nan)
            values = pc.if_else(nan, pa.scalar(None, values.type), values)
        _add_range(facts, transform, values, values, column)


def _transforms_of(spec: PartitionSpec, field_id: int) -> list[tuple[int, Transform]]:
    """Return (position, transform) of the fields of a column; void and unknown ones say nothing."""
    found = []
    for position, each in enumerate(spec.fields):
        try:
            transform = parse_transform(each.transform)
        except UnsupportedFeatureError:
            continue
        if each.source_id == field_id and transform.name != "void":
            found.append((position, transform))
    return found


def _add_range(
    facts: Facts, transform: Transform, least: pa.Array, greatest: pa.Array, column: pa.Field
) -> None:
    """Add that partition values are between two of them."""
    if transform.name == "bucket":
        facts.buckets.append((f"bucket[{transform.width}]", least, greatest))
        return
    lower, upper = source_span(transform, least, greatest, column.type)
    facts.spans.append(Span(comparable(lower), comparable(upper)))


def add_summaries(
    facts: Facts,
    manifests: pa.Table,
    spec: PartitionSpec,
    partition_type: pa.StructType,
    column: pa.Field,
    field_id: int,
) -> None:
    """Add what the partition summaries of manifests of one spec say of a column."""
    summaries = one_array(manifests.column("partitions"))
    for position, transform in _transforms_of(spec, field_id):
        summary = list_value(summaries, position)
        null, nan, lower, upper = (pc.struct_field(summary, [index]) for index in range(4))
        may_null = np.asarray(null.fill_null(True))
        may_nan = np.asarray(nan.fill_null(facts.is_floating)) & facts.is_floating
        empty = np.asarray(summary.is_valid()) & np.asarray(lower.is_null()) & (may_null | may_nan)
        facts.may_null &= may_null
        facts.may_nan &= may_nan
        facts.no_numbers |= empty
        facts.all_null |= empty & ~may_nan
        kind = partition_type.field(position)
        span = _summary_span(lower, upper, kind)
        _add_range(facts, transform, span.lower, span.upper, column)


def _summary_span(lower: pa.Array, upper: pa.Array, kind: pa.Field) -> Span:
    least, greatest = decode(lower, kind.type), decode(upper, kind.type)
    if pa.types.is_floating(kind.type) or type_name(kind) == "uuid":
        return _trusted(least, greatest, kind)
    return Span(least, greatest)
