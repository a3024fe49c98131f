"""What a piece of work costs: wall and CPU seconds, memory and bytes of the process tree.

The tree is this process and all it started: the JVM, its Python workers, child interpreters.
Processes that ended and were waited for are counted in their parents (`cutime`, and the io
counters of the kernel), so the difference of two readings misses only what is neither alive
nor reaped. CPU times come in ticks of 10 ms: repeat work that is shorter than ten of them.

`read_bytes` and `written_bytes` are what went through read and write calls, page cache or not;
they include pipes and a JVM's local sockets, so they are upper bounds.
"""

from __future__ import annotations

import gc
import os
import statistics
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = os.sysconf("SC_PAGE_SIZE")
MEMORY_INTERVAL_S = 0.1
COUNTED = ("wall_s", "cpu_s", "peak_bytes", "grown_bytes", "read_bytes", "written_bytes")


@dataclass(frozen=True)
class Reading:
    """The counters of the process tree at one moment."""

    cpu_s: float
    read_bytes: int
    written_bytes: int


@dataclass(frozen=True)
class Sample:
    """One measured run; `facts` are what the work itself reported (files, rates, …)."""

    wall_s: float
    cpu_s: float
    peak_bytes: int = 0
    grown_bytes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    facts: dict[str, float] = field(default_factory=dict)

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

    def metrics(self) -> list[str]:
        """Return the names that every sample has."""
        facts = set.intersection(*(set(s.facts) for s in self.samples)) if self.samples else set()
        return [*COUNTED, *sorted(facts)]

    def as_json(self) -> dict[str, Any]:
        medians = {metric: self.median(metric) for metric in self.metrics()} if self.samples else {}
        return {
            "case": self.case,
            "step": self.step,
            "system": self.system,
            "median": medians,
            "samples": [asdict(sample) for sample in self.samples],
        }


@dataclass(frozen=True)
class Reported:
    """A cost that the work took itself, in a process of its own where start-up must not count."""

    sample: Sample
    answer: Any = None


def process_tree() -> list[psutil.Process]:
    """Return this process and everything it started that is alive."""
    me = psutil.Process()
    return [me, *me.children(recursive=True)]


def read_tree() -> Reading:
    """Return the sum of the counters over the process tree, ended processes included."""
    cpu, read, written = 0.0, 0, 0
    for process in process_tree():
        try:
            times = process.cpu_times()
            io = process.io_counters()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        cpu += times.user + times.system + times.children_user + times.children_system
        read += io.read_chars
        written += io.write_chars
    return Reading(cpu, read, written)


class MemoryWatch:
    """Samples the unshared resident memory of the process tree while work runs."""

    def __init__(self) -> None:
        self.start_bytes = 0
        self.peak_bytes = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> MemoryWatch:
        self.start_bytes = self.peak_bytes = self._tree_bytes(process_tree())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        processes, turn = process_tree(), 0
        while not self._done.wait(MEMORY_INTERVAL_S):
            turn += 1
            if turn % 5 == 0:
                processes = process_tree()
            self.peak_bytes = max(self.peak_bytes, self._tree_bytes(processes))

    @staticmethod
    def _tree_bytes(processes: list[psutil.Process]) -> int:
        return sum(unshared_bytes(process.pid) for process in processes)


def unshared_bytes(pid: int) -> int:
    """Return a process's resident memory without mapped files; 0 where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * PAGE


def measure(work: Callable[[], Any]) -> tuple[Sample, Any]:
    """Run the work once and return what it cost and what it returned.

    Work that returns `Reported` is taken at its word. A dict that the work returns under the
    key "facts" joins the sample's facts.
    """
    gc.collect()
    before = read_tree()
    with MemoryWatch() as memory:
        start = time.perf_counter()
        answer = work()
        wall = time.perf_counter() - start
    after = read_tree()
    if isinstance(answer, Reported):
        return answer.sample, answer.answer
    facts = answer.get("facts", {}) if isinstance(answer, dict) else {}
    sample = Sample(
        wall_s=wall,
        cpu_s=after.cpu_s - before.cpu_s,
        peak_bytes=memory.peak_bytes,
        grown_bytes=max(0, memory.peak_bytes - memory.start_bytes),
        read_bytes=after.read_bytes - before.read_bytes,
        written_bytes=after.written_bytes - before.written_bytes,
        facts={name: float(value) for name, value in facts.items()},
    )
    return sample, answer
