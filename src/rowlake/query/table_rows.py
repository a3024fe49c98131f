"""The rows of one table as a DataFrame that knows how to count and collect them quickly."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from rowlake.model.task import ScanTask
from rowlake.plan.tasks import scan_tasks
from rowlake.query.partial_aggregates import answered_by_metadata, with_some_column
from rowlake.query.refusals import plain_error
from rowlake.scan.aggregate import Aggregate, AggregateTask, aggregate_kernel, aggregate_schema
from rowlake.verbs import read

if TYPE_CHECKING:
    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle

_COUNT = "rows"


def table_rows(handle: TableHandle, engine: Engine, request: read.Request) -> Any:
    """Return the rows of a request; Spark's errors are raised as rowlake's."""
    frame = read.frame(handle, engine, request)
    exact = replace(request, exact=True)
    return engine.table_frame(
        frame,
        plain_error,
        count=partial(_count, handle, engine, request),
        rows=partial(read.arrow, handle, engine, exact),
    )


def _count(handle: TableHandle, engine: Engine, request: read.Request) -> int:
    """Return how many rows a request has; its columns do not matter."""
    found = read.planned(
        handle, with_some_column(handle, replace(request, columns=None, exact=True)), engine
    )
    wanted = (Aggregate("count_all", None, _COUNT),)
    counts = None if request.predicate is not None else answered_by_metadata(found, wanted, engine)
    if counts is None:
        tasks = scan_tasks(found.plan, found.context, slots=engine.parallelism)
        counts = engine.run(
            aggregate_kernel,
            [AggregateTask(task, (), wanted) for task in tasks],
            aggregate_schema(AggregateTask(ScanTask(found.context, ()), (), wanted)),
            size_in_bytes=found.plan.size_in_bytes,
            label=f"counting rows of {found.view.name}",
        )
    return int(pc.sum(counts[_COUNT]).as_py() or 0)
