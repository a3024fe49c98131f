"""Partial aggregates as a DataFrame: each scan task yields groups in place of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.iceberg.metadata import view_of
from rowlake.model.task import ScanTask
from rowlake.plan.tasks import scan_tasks
from rowlake.scan.aggregate import Aggregate, AggregateTask, aggregate_kernel, aggregate_schema
from rowlake.verbs.read import Read, Request, planned

if TYPE_CHECKING:
    from rowlake.catalog.handle import TableHandle
    from rowlake.engine.spark import Engine
    from rowlake.model.schema import Schema
    from rowlake.sql.aggregate import Aggregation


def partial_frame(
    engine: Engine, handle: TableHandle, aggregation: Aggregation, at: dict[str, Any]
) -> Any:
    """Return the partial aggregates of a table; counts of whole clean tables read no file."""
    named = [partial.column for partial in aggregation.partials if partial.column is not None]
    columns = tuple(dict.fromkeys([*aggregation.group_by, *named]))
    request = Request(columns, aggregation.predicate, exact=True, **at)
    read = planned(handle, _with_some_column(handle, request), engine)
    counted = _counted(read, aggregation)
    if counted is not None:
        return engine.from_arrow(counted)
    tasks = scan_tasks(read.plan, read.context, slots=engine.slots)
    wanted = tuple(Aggregate(p.function, p.column, p.name) for p in aggregation.partials)
    jobs = [AggregateTask(task, aggregation.group_by, wanted) for task in tasks]
    if not jobs:
        return engine.from_arrow(_empty(read, aggregation, wanted))
    return engine.dataframe(aggregate_kernel, jobs, aggregate_schema(jobs[0]))


def _with_some_column(handle: TableHandle, request: Request) -> Request:
    """Add a cheap column to a scan that only counts rows."""
    if request.columns:
        return request
    schema = view_of(
        handle,
        snapshot_id=request.snapshot_id,
        as_of_ms=request.as_of_ms,
        ref=request.ref,
    ).schema
    return replace(request, columns=cheapest_column(schema))


def _counted(read: Read, aggregation: Aggregation) -> pa.Table | None:
    """Return count(*) from the manifests, where no delete and no condition may change it."""
    functions = {partial.function for partial in aggregation.partials}
    if functions != {"count_all"} or aggregation.group_by or aggregation.predicate is not None:
        return None
    if not read.plan.is_clean:
        return None
    counts = [pc.sum(files["record_count"]).as_py() or 0 for files in read.plan.data.values()]
    total = sum(counts)
    return pa.table({aggregation.partials[0].name: pa.array([total], pa.int64())})


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
