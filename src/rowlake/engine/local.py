"""Small work on this machine: the same kernels, no Spark job and no session.

Comes in: a kernel and tasks. Goes out: one Arrow table, tasks in their order. Threads do the
smallest, and help a little, since Arrow lets other threads run while it reads and writes; for what
takes longer there are processes (`rowlake.engine.crew`).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.engine.worker import as_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rowlake.engine.crew import Crew
    from rowlake.engine.progress import Reporter

MAX_FILES = 64
MAX_BYTES = 32 * 1024 * 1024
# Where Spark's tasks would run on this machine too, they only add what a task costs; what is left
# to Spark is work that may outgrow one process.
MAX_FILES_HERE = 10_000
MAX_BYTES_HERE = 1 << 30


def is_tiny(
    tasks: Sequence[Any], size_in_bytes: int | None, *, is_one_machine: bool = False
) -> bool:
    """Tell whether starting a Spark job would cost more than the work itself."""
    most_files, most_bytes = (
        (MAX_FILES_HERE, MAX_BYTES_HERE) if is_one_machine else (MAX_FILES, MAX_BYTES)
    )
    few = sum(len(getattr(task, "files", (task,))) for task in tasks) <= most_files
    return not tasks or (few and size_in_bytes is not None and size_in_bytes <= most_bytes)


def run_here(
    kernel: Callable[[Any], Iterable[pa.RecordBatch]],
    tasks: Sequence[Any],
    output: pa.Schema,
    reporter: Reporter,
    crew: Crew | None = None,
) -> pa.Table:
    """Run the tasks in threads, or by a crew; the first error ends the run, the rest is dropped."""
    calls = None if crew is None else crew.calls(kernel)

    def run(task: Any) -> pa.Table:
        if calls is not None:
            found = calls(task)
            return as_table([] if found is None else [found], output)
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
    except KeyboardInterrupt:
        if calls is not None:
            calls.interrupt()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return as_table(results, output)
