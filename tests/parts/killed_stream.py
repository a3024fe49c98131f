"""A streaming query from table to table that dies (-9) at a named point; run as a script.

    killed_stream.py WAREHOUSE CHECKPOINT POINT

The query follows the changes of `shop.source` into `shop.target` to their end. At the point the
driver, its JVM and the process that reached the point are killed. Points of the source are reached
in Python processes that Spark starts, so they travel with the planner of the data source.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import rowlake
from rowlake.catalog.sql import SqlBackend
from rowlake.commit.phases import Phase, at_phase
from rowlake.engine.session import make_session
from rowlake.storage.files import Storage
from rowlake.stream import apply
from rowlake.stream.sink import Sink
from tests.spark_session import QUICK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NONE = "none"
SOURCE_POINTS = (
    "source.initial",
    "source.latest",
    "source.latest.told",
    "source.plan",
    "source.plan.told",
    "source.read",
    "source.read.half",
    "source.read.end",
)
PHASES = {f"sink.{phase.name.lower()}": phase for phase in Phase}
STEPS = {
    "sink.rows": (apply, "event_rows"),
    "sink.open": (Storage, "open_output"),
    "sink.write": (Storage, "write"),
    "sink.swap": (SqlBackend, "commit"),
}
SINK_POINTS = (
    "sink.begin",
    "sink.rows.done",
    "sink.open",
    "sink.open.done",
    "sink.written",
    "sink.validated",
    "sink.write",
    "sink.write.done",
    "sink.produced",
    "sink.swap",
    "sink.swap.done",
    "sink.end",
)
POINTS = (*SOURCE_POINTS, *SINK_POINTS)


@dataclass(frozen=True)
class Killer:
    """Kills the driver's process group, and the process that calls it at the point."""

    point: str
    group: int

    def __call__(self, reached: str) -> None:
        if reached == self.point:
            os.killpg(self.group, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)


# ---------------------------------------------------------------------- the source


@dataclass
class KillingStream:
    """A table's stream with points before and after what Spark asks of it."""

    stream: Any
    kill: Killer

    @property
    def schema(self) -> Any:
        return self.stream.schema

    def initial(self) -> Any:
        self.kill("source.initial")
        return self.stream.initial()

    def latest(self, position: Any) -> Any:
        self.kill("source.latest")
        found = self.stream.latest(position)
        self.kill("source.latest.told")
        return found

    def plan(self, start: Any, end: Any) -> Any:
        if start == end:  # asked by a query that starts again, before its first batch
            return self.stream.plan(start, end)
        self.kill("source.plan")
        kernel, tasks = self.stream.plan(start, end)
        self.kill("source.plan.told")
        return KillingKernel(kernel, self.kill), tasks


@dataclass(frozen=True)
class KillingKernel:
    kernel: Callable[[Any], Any]
    kill: Killer

    def __call__(self, task: Any) -> Iterator[Any]:
        self.kill("source.read")
        for batch in self.kernel(task):
            yield batch
            self.kill("source.read.half")
        self.kill("source.read.end")


@dataclass(frozen=True)
class KillingPlanner:
    planner: Any
    kill: Killer

    def __call__(self, options: Any) -> Any:
        return self.planner(options)

    def stream(self, options: Any) -> KillingStream:
        return KillingStream(self.planner.stream(options), self.kill)


# ---------------------------------------------------------------------- the sink


def arm_sink(kill: Killer) -> None:
    """Have batches of this process die at the point; what is outside of a batch does not."""
    inside: list[bool] = []
    write = Sink.__call__

    def call(sink: Sink, frame: Any, number: int) -> None:
        inside.append(True)
        kill("sink.begin")
        phase = PHASES.get(kill.point)
        if phase is None:
            write(sink, frame, number)
        else:
            with at_phase(phase, lambda _: kill(kill.point)):
                write(sink, frame, number)
        kill("sink.end")
        inside.clear()

    Sink.__call__ = call  # type: ignore[method-assign]
    for name, (owner, method) in STEPS.items():
        _watch(owner, method, lambda side, name=name: inside and kill(name + side))


def _watch(owner: Any, method: str, reached: Callable[[str], Any]) -> None:
    whole = getattr(owner, method)

    def call(*args: Any, **kwargs: Any) -> Any:
        reached("")
        found = whole(*args, **kwargs)
        reached(".done")
        return found

    setattr(owner, method, call)


def main() -> None:
    warehouse, checkpoint, point = sys.argv[1:]
    kill = Killer(point, os.getpgrp())
    settings = {"spark.master": "local[2]", "spark.driver.memory": "1g", **QUICK}
    spark, _ = make_session(settings)
    with rowlake.connect(warehouse, spark=spark) as lake:
        if point != NONE:
            arm_sink(kill)
            lake.engine._source_planner = KillingPlanner(lake.engine._source_planner, kill)
        query = lake.table("shop.target").stream_upsert(
            lake.read_stream("shop.source", changes=True),
            ["id"],
            sequence_by="_change_ordinal",
            apply_as_deletes="_change_type = 'delete'",
            app_id="copy",
            checkpoint=checkpoint,
            trigger={"availableNow": True},
        )
        query.awaitTermination()
        print(query.exception() or "done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
