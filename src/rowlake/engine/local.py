"""Small work in threads of the driver: the same kernels, no Spark job and no session.

Comes in: a kernel and tasks. Goes out: one Arrow table, tasks in their order. One rule for every
master: work within `MAX_FILES` and `MAX_BYTES` runs here, everything else as Spark tasks. See
docs/decisions/0004-driver-or-spark.md for how the limits were chosen.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.engine.worker import as_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rowlake.engine.progress import Reporter

MAX_FILES = 64
MAX_BYTES = 32 * 1024 * 1024


def is_tiny(tasks: Sequence[Any], size_in_bytes: int | None) -> bool:
    """Return whether starting a Spark job would cost more than the work itself."""
    few = files_of(tasks) <= MAX_FILES
    return not tasks or (few and size_in_bytes is not None and size_in_bytes <= MAX_BYTES)


def files_of(tasks: Sequence[Any]) -> int:
    """Return how many files the tasks open; a task that names none counts as one."""
    return sum(len(getattr(task, "files", (task,))) for task in tasks)


def run_here(
    kernel: Callable[[Any], Iterable[pa.RecordBatch]],
    tasks: Sequence[Any],
    output: pa.Schema,
    reporter: Reporter,
) -> pa.Table:
    """Run the tasks in threads; the first error ends the run, the rest is dropped."""

    def run(task: Any) -> pa.Table:
        batches = [batch for batch in kernel(task) if batch.num_rows]
        return as_table([pa.Table.from_batches([batch]) for batch in batches], output)

    if len(tasks) <= 1:
        return as_table([run(task) for task in tasks], output)
    pool = ThreadPoolExecutor(min(len(tasks), os.cpu_count() or 1))
    results = []
    try:
        for result in pool.map(run, tasks):
            results.append(result)
            reporter.update(len(results), len(tasks))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return as_table(results, output)
