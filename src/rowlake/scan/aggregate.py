"""Partial aggregates of one task: count, sum, min, max, grouped.

Comes in: a scan task, group columns and aggregates over projected columns. Goes out: rows of
groups, to be aggregated again by the engine: a group comes once or, where a task has very many
groups, several times; without group columns there is always exactly one row. What comes out means
what Spark's partial aggregates mean: NaN is one group and larger than any number, -0.0 and 0.0 are
one group, nulls are a group and are not counted. Sums of integers are exact, as decimal(38, 0): the
engine checks whether their total overflows a long. Memory is bounded: neither rows nor groups pile
up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pt

from rowlake.errors import InternalError
from rowlake.scan.aggregate_columns import KEYS, Measure, key_column, measure_of, restored_key
from rowlake.scan.kernel import scan_kernel
from rowlake.scan.output import output_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.model.task import ScanTask

# Rows are grouped this many at a time, and groups are joined when there are twice as many.
_CHUNK_ROWS = 1 << 19
# Where grouping leaves more than this share of the rows, groups are not worth keeping.
_POOR = 0.5

FUNCTIONS = ("count_all", "count", "sum", "min", "max")
# A sum of more digits than this may overflow Spark's result type, which is not for us to judge.
_MOST_DIGITS = 28


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a projected column (None for `count_all`, that is count(*))."""

    function: str
    column: str | None
    name: str


@dataclass(frozen=True)
class AggregateTask:
    """A scan whose rows are only wanted as partial aggregates."""

    scan: ScanTask
    group_by: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]


def is_pushable(function: str, field: pa.Field | None) -> bool:
    """Return whether a partial aggregate here gives exactly what Spark's would."""
    if function == "count_all":
        return True
    if field is None or function not in FUNCTIONS:
        return False
    if function == "count":
        return True
    kind = field.type
    if function == "sum":
        if pt.is_decimal(kind):
            return bool(kind.precision <= _MOST_DIGITS)
        return bool(pt.is_signed_integer(kind) or pt.is_floating(kind))
    return not (pt.is_nested(kind) or pt.is_null(kind))


def aggregate_schema(task: AggregateTask) -> pa.Schema:
    """Return the schema of what `aggregate_kernel` yields: group columns, then aggregates."""
    found = output_schema(task.scan.context)
    groups = [found.field(name).with_nullable(True) for name in task.group_by]
    measures = [pa.field(one.name, measure.result) for one, measure in _measures(task, found)]
    return pa.schema(groups + measures)


def aggregate_kernel(task: AggregateTask) -> Iterator[pa.RecordBatch]:
    """Yield the partial aggregates of a task."""
    found = output_schema(task.scan.context)
    measures = [measure for _, measure in _measures(task, found)]
    groups = _Groups([found.field(name) for name in task.group_by], measures)
    schema = aggregate_schema(task)
    for batch in scan_kernel(task.scan):
        groups.add(batch)
        if groups.are_many:
            yield from groups.flushed(schema).to_batches()
    yield from groups.result(schema).to_batches()


def _measures(task: AggregateTask, found: pa.Schema) -> list[tuple[Aggregate, Measure]]:
    result = []
    for one in task.aggregates:
        field = None if one.column is None else found.field(one.column)
        if not is_pushable(one.function, field):
            raise InternalError(f"{one.function}({one.column}) cannot be aggregated in a scan.")
        result.append((one, measure_of(one.function, field)))
    return result


class _Groups:
    """The groups seen so far: rows waiting to be grouped, and partial results."""

    def __init__(self, keys: list[pa.Field], measures: list[Measure]) -> None:
        self._keys, self._measures = keys, measures
        self._names = [f"{KEYS}{at}" for at in range(len(keys))]
        self._waiting: list[pa.RecordBatch] = []
        self._partials: list[pa.Table] = []
        self._waiting_rows = self._partial_rows = 0
        self._emitted = False
        self.are_many = False

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in some rows."""
        columns = {
            name: key_column(batch.column(field.name))
            for name, field in zip(self._names, self._keys, strict=True)
        }
        for at, measure in enumerate(self._measures):
            columns.update(measure.inputs(batch, f"m{at}_"))
        if not columns:  # count(*) alone
            columns["rows"] = pa.nulls(batch.num_rows)
        self._waiting.append(pa.RecordBatch.from_pydict(columns))
        self._waiting_rows += batch.num_rows
        if self._waiting_rows >= _CHUNK_ROWS:
            self._group()

    def flushed(self, schema: pa.Schema) -> pa.Table:
        """Return the groups so far and forget them."""
        found = self._finished(schema)
        self._partials, self._partial_rows, self.are_many = [], 0, False
        self._emitted = True
        return found

    def result(self, schema: pa.Schema) -> pa.Table:
        """Return the groups that are left."""
        if self._waiting:
            self._group()
        if self._partials:
            return self._finished(schema)
        return schema.empty_table() if self._keys or self._emitted else self._of_nothing(schema)

    def _finished(self, schema: pa.Schema) -> pa.Table:
        merged = self._merged()
        keys = [
            restored_key(merged[name], field.type)
            for name, field in zip(self._names, self._keys, strict=True)
        ]
        values = [measure.result_of(merged, f"m{at}_") for at, measure in enumerate(self._measures)]
        return pa.table(keys + values, schema=schema)

    def _group(self) -> None:
        rows = pa.Table.from_batches(self._waiting)
        steps = [
            step for at, one in enumerate(self._measures) for step in one.first_steps(f"m{at}_")
        ]
        self._keep(_aggregated(rows, self._names, steps))
        self._waiting, self._waiting_rows = [], 0
        if self._partial_rows >= 2 * _CHUNK_ROWS:
            self._reduce()

    def _reduce(self) -> None:
        """Merge equal groups; where few are equal, emit all of them."""
        before, merged = self._partial_rows, self._merged()
        self._partials, self._partial_rows = [merged], merged.num_rows
        self.are_many = merged.num_rows > _POOR * before

    def _keep(self, partial: pa.Table) -> None:
        self._partials.append(self._widened(partial))
        self._partial_rows += partial.num_rows

    def _widened(self, partial: pa.Table) -> pa.Table:
        columns = {name: partial[name] for name in self._names}
        for at, measure in enumerate(self._measures):
            columns.update(measure.widened(partial, f"m{at}_"))
        return pa.table(columns)

    def _merged(self) -> pa.Table:
        if len(self._partials) == 1:
            return self._partials[0]
        steps = [
            step for at, one in enumerate(self._measures) for step in one.merge_steps(f"m{at}_")
        ]
        return self._widened(_aggregated(pa.concat_tables(self._partials), self._names, steps))

    def _of_nothing(self, schema: pa.Schema) -> pa.Table:
        values = [pa.array([measure.of_nothing], measure.result) for measure in self._measures]
        return pa.table(values, schema=schema)


def _aggregated(rows: pa.Table, keys: list[str], steps: list[tuple[str, str, str]]) -> pa.Table:
    """Return groups with steps (column, function, output name) applied."""
    calls = [([] if function == "count_all" else column, function) for column, function, _ in steps]
    grouped = rows.group_by(keys, use_threads=False).aggregate(calls)
    columns = dict(zip(keys, grouped.select(keys).columns, strict=True))
    for (_, _, name), (column, function) in zip(steps, calls, strict=True):
        found = "count_all" if function == "count_all" else f"{column}_{function}"
        columns[name] = grouped[found]
    return pa.table(columns)
