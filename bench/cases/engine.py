"""The cost of an empty Spark task: bare `mapInArrow`, and rowlake's engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bench.case import Case, Contestant, Step, entrants
from bench.children.kernels import nothing
from bench.measure import Reported, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.lab import Lab

TASKS = 24
OUTPUT = pa.schema([pa.field("n", pa.int64())])
# Spark keeps a pool of workers for every environment.
OWN_WORKERS = "ROWLAKE_BENCH_WORKERS"
FAR_TOO_BIG_FOR_THE_DRIVER = 1 << 40


def empty_kernel() -> Callable[[Any], Iterator[pa.RecordBatch]]:
    """Return a kernel that yields nothing; a local function, so that workers import no bench.

    It reads its input to the end: Spark does not reuse a worker that does not.
    """

    def empty(batches: Any) -> Iterator[Any]:
        for _ in batches:
            yield from ()

    return empty


def contestants(lab: Lab) -> list[Contestant]:
    """Run tasks that yield nothing."""
    makers = {"rowlake": lambda: _rowlake(lab), "bare-mapInArrow": lambda: _bare(lab)}
    return entrants(lab.wanted(*makers), lambda name: _per_task(name, makers[name]()))


def _bare(lab: Lab) -> Callable[[], None]:
    """Run in separate workers: rowlake speeds up those that it uses."""
    kernel, environment = empty_kernel(), lab.spark.sparkContext.environment

    def run() -> None:
        environment[OWN_WORKERS] = "bare"
        try:
            frame = lab.spark.range(0, TASKS, 1, TASKS).mapInArrow(kernel, "n bigint")
        finally:
            del environment[OWN_WORKERS]
        frame.collect()

    return run


def _rowlake(lab: Lab) -> Callable[[], None]:
    from rowlake.engine.spark import Engine

    engine = Engine(lab.spark)

    def run() -> None:
        engine.run(
            nothing,
            list(range(TASKS)),
            OUTPUT,
            size_in_bytes=FAR_TOO_BIG_FOR_THE_DRIVER,
            label="nothing",
            progress=False,
        )

    return run


def _per_task(name: str, work: Callable[[], None]) -> Contestant:
    def run() -> Reported:
        sample, _ = measure(work)
        sample.facts["cpu_per_task_s"] = sample.cpu_s / TASKS
        sample.facts["wall_per_task_s"] = sample.wall_s / TASKS
        return Reported(sample)

    return Contestant(name, (Step("tasks", run),))


CASES = [
    Case("empty_task", f"{TASKS} Spark tasks that do nothing", contestants, rounds=3, warmups=1)
]
