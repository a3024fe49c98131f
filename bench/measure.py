"""What a piece of work costs: wall and CPU seconds, memory and bytes of the process tree.

The tree is this process and all it started: the JVM, its Python workers, child interpreters.
Processes that ended and were waited for are counted in their parents (`cutime`, and the io
counters of the kernel); Spark's Python workers, which nobody waits for, are watched while they
live. CPU times come in ticks of 10 ms: repeat work that is shorter than ten of them.

`read_bytes` and `written_bytes` are what went through read and write calls, page cache or not;
they include pipes and a JVM's local sockets, so they are upper bounds.

Work that is shorter than `SHORT_S` and may be repeated is repeated until its clock means something;
the sample is the mean of the repetitions. Every sample says where the work ran.
"""

from __future__ import annotations

import gc
import statistics
import threading
import time
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bench.processes import Forgotten, Tree, Usage, memory_of, usage

if TYPE_CHECKING:
    from collections.abc import Callable

INTERVAL_S = 0.1
# What takes less is repeated, until all repetitions together took so long.
SHORT_S = 0.1
LOOP_S = 0.5
MOST_REPETITIONS = 50
# Where work ran.
DRIVER, SPARK_TASKS, OWN_PROCESS = "driver", "Spark tasks", "own process"
# From so many samples on the lowest and the highest one are no part of the spread.
MANY_SAMPLES = 5
COUNTED = ("wall_s", "cpu_s", "peak_bytes", "grown_bytes", "read_bytes", "written_bytes")


@dataclass(frozen=True)
class Sample:
    """One measured run; `facts` are what the work itself reported (files, rates, …).

    `place` is where it ran; `repetitions` is how often, where the figures are the mean of several.
    """

    wall_s: float
    cpu_s: float
    peak_bytes: int = 0
    grown_bytes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    facts: dict[str, float] = field(default_factory=dict)
    place: str = ""
    repetitions: int = 1

    def value(self, metric: str) -> float:
        """Return a counter or a fact by its name; KeyError where there is none."""
        return float(getattr(self, metric)) if metric in COUNTED else self.facts[metric]


@dataclass
class Measurement:
    """All samples of one step of one case on one system."""

    case: str
    step: str
    system: str
    samples: list[Sample] = field(default_factory=list)

    def median(self, metric: str) -> float:
        return statistics.median(sample.value(metric) for sample in self.samples)

    def spread(self, metric: str) -> tuple[float, float]:
        """Return the lowest and the highest sample; of many, without one outlier on each side."""
        values = sorted(sample.value(metric) for sample in self.samples)
        if len(values) >= MANY_SAMPLES:
            values = values[1:-1]
        return values[0], values[-1]

    @property
    def place(self) -> str:
        """Where the work ran; samples may differ."""
        return " / ".join(dict.fromkeys(sample.place for sample in self.samples if sample.place))

    def metrics(self) -> list[str]:
        """Return the names that every sample has."""
        facts = set.intersection(*(set(s.facts) for s in self.samples)) if self.samples else set()
        return [*COUNTED, *sorted(facts)]

    def as_json(self) -> dict[str, Any]:
        metrics = self.metrics() if self.samples else []
        return {
            "case": self.case,
            "step": self.step,
            "system": self.system,
            "place": self.place,
            "median": {metric: self.median(metric) for metric in metrics},
            "spread": {metric: self.spread(metric) for metric in metrics},
            "samples": [asdict(sample) for sample in self.samples],
        }


@dataclass(frozen=True)
class Reported:
    """A cost that the work took itself, in a process of its own where start-up must not count."""

    sample: Sample
    answer: Any = None


class Watch:
    """Samples the process tree while work runs: usage, peak memory, workers that end."""

    def __init__(self) -> None:
        self.start_bytes = 0
        self.peak_bytes = 0
        self.used = Usage()
        self._tree = Tree()
        self._forgotten = Forgotten(self._tree)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Watch:
        self._look()
        self.start_bytes = self.peak_bytes
        self._before = self._total()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the difference; who ended was in the first total, or is new: it is added whole."""
        self._done.set()
        self._thread.join()
        after = self._total() + self._forgotten.used_by_the_ended()
        before = self._before
        self.used = Usage(
            after.cpu_s - before.cpu_s,
            after.read_bytes - before.read_bytes,
            after.written_bytes - before.written_bytes,
        )

    def _total(self) -> Usage:
        found = [usage(pid) for pid in self._tree.pids()]
        return sum((one for one in found if one is not None), Usage())

    def _watch(self) -> None:
        while not self._done.wait(INTERVAL_S):
            self._look()

    def _look(self) -> None:
        pids = self._tree.pids()
        self._forgotten.look(pids)
        self.peak_bytes = max(self.peak_bytes, memory_of(self._tree, pids))


def measure(work: Callable[[], Any], *, loops: bool = False, times: int = 1) -> tuple[Sample, Any]:
    """Run the work and return what it cost and what it returned (last, where it is repeated).

    With `loops` work that is short is repeated. Work that does its act several `times` in one call
    is charged for one. Work that returns `Reported` is taken at its word.
    """
    sample, answer = _measure_once(work)
    if loops and sample.wall_s < SHORT_S and not isinstance(answer, Reported):
        repetitions = min(MOST_REPETITIONS, int(LOOP_S / max(sample.wall_s, 1e-6)) + 1)
        rest, answer = _measure_once(lambda: [work() for _ in range(repetitions)][-1])
        return _mean(_sum(sample, rest), repetitions + 1), answer
    return _mean(sample, times), answer


def _sum(one: Sample, other: Sample) -> Sample:
    return replace(
        other,
        wall_s=one.wall_s + other.wall_s,
        cpu_s=one.cpu_s + other.cpu_s,
        read_bytes=one.read_bytes + other.read_bytes,
        written_bytes=one.written_bytes + other.written_bytes,
    )


def _mean(sample: Sample, times: int) -> Sample:
    """Return the cost of one of several equal acts; memory is that of all of them."""
    if times == 1:
        return sample
    return replace(
        sample,
        wall_s=sample.wall_s / times,
        cpu_s=sample.cpu_s / times,
        read_bytes=sample.read_bytes // times,
        written_bytes=sample.written_bytes // times,
        repetitions=times,
    )


def _measure_once(work: Callable[[], Any]) -> tuple[Sample, Any]:
    """Run the work once; a dict that it returns under the key "facts" joins the sample's facts."""
    gc.collect()
    with Watch() as watch:
        start = time.perf_counter()
        answer = work()
        wall = time.perf_counter() - start
    if isinstance(answer, Reported):
        return answer.sample, answer.answer
    facts = answer.get("facts", {}) if isinstance(answer, dict) else {}
    sample = Sample(
        wall_s=wall,
        cpu_s=watch.used.cpu_s,
        peak_bytes=watch.peak_bytes,
        grown_bytes=watch.peak_bytes - watch.start_bytes,
        read_bytes=watch.used.read_bytes,
        written_bytes=watch.used.written_bytes,
        facts={name: float(value) for name, value in facts.items()},
    )
    return sample, answer
