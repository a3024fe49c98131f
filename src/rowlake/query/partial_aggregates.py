"""Partial aggregates as a DataFrame: each scan task yields groups in place of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.model.task import ScanTask
from rowlake.plan.answers import NEEDED, bound_of, count_of, row_count
from rowlake.plan.files import plan_files
from rowlake.plan.tasks import scan_tasks
from rowlake.scan.aggregate import Aggregate, AggregateTask, aggregate_kernel, aggregate_schema
from rowlake.storage.files import Storage
from rowlake.verbs.read import Read, Request, planned

if TYPE_CHECKING:
    from rowlake.engine.spark import Engine
    from rowlake.model.format import Capabilities
    from rowlake.model.handle import TableHandle
    from rowlake.model.schema import Schema
    from rowlake.query.aggregates import Aggregation

ANSWERED = {"count_all", "count", "min", "max"}


def partial_frame(
    engine: Engine, handle: TableHandle, aggregation: Aggregation, at: dict[str, Any]
) -> Any:
    """Return the partial aggregates of a table; what the manifests tell exactly reads no file."""
    named = [partial.column for partial in aggregation.partials if partial.column is not None]
    columns = tuple(dict.fromkeys([*aggregation.group_by, *named]))
    request = Request(columns, aggregation.predicate, exact=True, **at)
    read = planned(handle, with_some_column(handle, request), engine)
    wanted = tuple(Aggregate(p.function, p.column, p.name) for p in aggregation.partials)
    if not aggregation.group_by and aggregation.predicate is None:
        answered = answered_by_metadata(read, wanted, engine)
        if answered is not None:
            return engine.from_arrow(answered)
    tasks = scan_tasks(read.plan, read.context, slots=engine.slots)
    jobs = [AggregateTask(task, aggregation.group_by, wanted) for task in tasks]
    if not jobs:
        return engine.from_arrow(_empty(read, aggregation, wanted))
    return engine.few_rows(
        aggregate_kernel,
        jobs,
        aggregate_schema(jobs[0]),
        size_in_bytes=read.plan.size_in_bytes,
    )


def with_some_column(handle: TableHandle, request: Request) -> Request:
    """Add a cheap column to a scan that only counts rows."""
    if request.columns:
        return request
    schema = handle.view(
        snapshot_id=request.snapshot_id,
        as_of_ms=request.as_of_ms,
        ref=request.ref,
    ).schema
    return replace(request, columns=cheapest_column(schema))


def answered_by_metadata(
    read: Read, wanted: tuple[Aggregate, ...], engine: Engine | None = None
) -> pa.Table | None:
    """Return aggregates of all rows from the manifests; None where they do not say them exactly."""
    if not {one.function for one in wanted} <= ANSWERED or not read.plan.is_clean:
        return None
    plan = read.plan
    if any(one.function != "count_all" for one in wanted):
        storage = Storage(read.view.io_properties)
        plan = plan_files(read.view, None, storage, columns=NEEDED, runner=engine)
    files = list(plan.data.values())
    schema = aggregate_schema(AggregateTask(ScanTask(read.context, ()), (), wanted))
    columns = []
    for one, field in zip(wanted, schema, strict=True):
        answer = _answer(files, one, read.context.projection, read.view.can)
        if answer is None:
            return None
        columns.append(answer.cast(field.type))
    return pa.table(columns, schema=schema)


def _answer(
    files: list[pa.Table], one: Aggregate, projection: Schema, can: Capabilities
) -> pa.Array | None:
    if one.column is None:
        rows = row_count(files)
        return None if rows is None else pa.array([rows], pa.int64())
    field = projection.arrow.field(one.column)
    if one.function == "count":
        count = count_of(files, field)
        return None if count is None else pa.array([count], pa.int64())
    if not can.exact_bounds:
        return None
    return bound_of(files, field, greatest=one.function == "max")


def _empty(read: Read, aggregation: Aggregation, wanted: tuple[Aggregate, ...]) -> pa.Table:
    task = AggregateTask(ScanTask(read.context, ()), aggregation.group_by, wanted)
    return aggregate_schema(task).empty_table()


def cheapest_column(schema: Schema) -> tuple[str, ...]:
    """Return one column that is cheap to read, for a scan that only counts rows."""
    fixed = [field.name for field in schema.arrow if _width(field.type) <= 64]
    return tuple([*fixed, *schema.arrow.names][:1])


def _width(kind: pa.DataType) -> int:
    try:
        return int(kind.bit_width)
    except ValueError:
        return 1 << 20
