"""Run many random histories of row-level changes, as `make fuzz` does.

Comes in: how many histories, the seed, the number of steps of each, how many seconds at most, how
many processes. Goes out: the seed, the number of histories and operations, and the first history
that went wrong, cut down to the steps that it needs. A history has a number; the same seed, number
and steps always give the same history, in any process. Every table is read by rowlake and compared
with a plain oracle; at the end of some histories PyIceberg reads it too, at the end of fewer
Iceberg Java. With `--changes`, the change feeds of each table are replayed instead. With `--format
delta` the tables are Delta's; delta-rs, DuckDB and Delta on Spark read some of them. With `--index`
the tables have a key index, which is damaged and which writes of PyIceberg leave out.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.histories.changes import check_changes
from tests.histories.delta import DeltaHistory
from tests.histories.driver import driver_lake, run, tight_limits
from tests.histories.history import Divergence, History, run_history
from tests.histories.key_index import DeltaIndexHistory, IndexHistory
from tests.histories.readers import (
    FOR_PYICEBERG,
    check_delta_rs,
    check_delta_spark,
    check_duckdb,
    check_java,
    check_pyiceberg,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


REPORT_SECONDS = 30
MEMORY = Path("/dev/shm")  # tables there need not survive a crash of the machine
FORMATS = ("iceberg", "delta")
PYTHON_EACH, JAVA_EACH = 5, 20  # one history in this many is read by each
_DELTA_READERS: dict[str, Callable[[History], bool]] = {
    "delta-rs": check_delta_rs,
    "DuckDB": check_duckdb,
    "Delta on Spark": check_delta_spark,
}
_PROCESS = ExitStack()
_GROUNDS: list[Ground] = []


@dataclass(frozen=True)
class Way:
    """Of which format tables are, whether their change feeds are replayed, or have a key index."""

    format: str = "iceberg"
    changes: bool = False
    index: bool = False


@dataclass(frozen=True)
class Done:
    """A history that was run; `divergence` says what went wrong."""

    number: int
    operations: int = 0
    divergence: str | None = None
    reader: str | None = None  # the other reader of its table
    feeds: int = 0


@dataclass
class Tally:
    seed: str
    steps: int
    histories: int = 0
    operations: int = 0
    feeds: int = 0
    read_by: Counter[str] = field(default_factory=Counter)
    failed: list[int] = field(default_factory=list)
    started: float = field(default_factory=monotonic)

    def add(self, done: Done) -> None:
        self.histories += 1
        self.operations += done.operations
        self.feeds += done.feeds
        self.read_by.update([done.reader] if done.reader else [])
        self.failed += [] if done.divergence is None else [done.number]

    def __str__(self) -> str:
        readers = ", ".join(f"{name}: {count}" for name, count in sorted(self.read_by.items()))
        more = f"; changes replayed: {self.feeds}" if self.feeds else ""
        more += f"; also read by {readers}" if readers else ""
        return (
            f"seed {self.seed}, {self.steps} steps: {self.histories} histories, "
            f"{self.operations} operations, {len(self.failed)} divergences "
            f"in {monotonic() - self.started:.0f} s{more}"
        )


# --- one history


def sources(seed: str, number: int, places: list[int]) -> list[random.Random]:
    """Return the random sources of a history: of the table, and of the steps at some places."""
    return [random.Random(f"{seed}:{number}:{place}") for place in (0, *places)]


def reader_of(number: int, way: Way) -> str | None:
    """Return which other reader checks the table of a history, if any."""
    if way.changes:
        return None
    is_delta = way.format == "delta"
    if number % JAVA_EACH == JAVA_EACH - 1:
        return "Delta on Spark" if is_delta else "Java"
    if number % PYTHON_EACH:
        return None
    return ("delta-rs", "DuckDB")[number // PYTHON_EACH % 2] if is_delta else "PyIceberg"


class Ground:
    """Where the histories of one process are run: a folder of its own."""

    def __init__(self, folder: str, way: Way) -> None:
        self._folder, self.way = folder, way
        self._lake = _PROCESS.enter_context(driver_lake(f"{folder}/lake"))

    @cached_property
    def _java(self) -> tuple[Any, Callable[[str], Any]]:
        """A lake in a folder that is Iceberg Java's catalog too, and Java's SQL."""
        warehouse = Path(self._folder, "java")
        warehouse.mkdir()
        lake = _PROCESS.enter_context(driver_lake(str(warehouse), "filesystem"))
        return lake, _PROCESS.enter_context(java_sql(warehouse))

    def run(self, number: int, randoms: list[random.Random]) -> tuple[History, str | None]:
        """Run one history, have its reader check the table, and return which one did."""
        reader = reader_of(number, self.way)
        with tight_limits(tight=number % 2 == 0):
            history = self._history(reader, randoms)
        return history, reader if reader is None or self._is_read(history, reader) else None

    def _history(self, reader: str | None, randoms: list[random.Random]) -> History:
        if self.way.format == "delta":
            of = DeltaIndexHistory if self.way.index else DeltaHistory
            return run_history(self._lake, randoms, run, of=of, folder=self._folder)
        lake = self._java[0] if reader == "Java" else self._lake
        options = FOR_PYICEBERG if reader == "PyIceberg" else {}
        of = IndexHistory if self.way.index else History
        return run_history(lake, randoms, run, of=of, **options)

    def _is_read(self, history: History, reader: str) -> bool:
        """Have the reader check the table; return False where it cannot read such a table."""
        if reader == "Java":
            return check_java(history, self._java[1])
        if reader == "PyIceberg":
            check_pyiceberg(history)
            return True
        return _DELTA_READERS[reader](history)


@contextmanager
def java_sql(warehouse: Path) -> Iterator[Callable[[str], Any]]:
    """Yield a function that runs SQL on Iceberg Java, with a folder as its catalog `java`."""
    from rowlake.engine.session import make_session
    from tests.spark_session import QUICK, iceberg_settings

    found = iceberg_settings(warehouse)
    if not found:
        sys.exit("Iceberg's Java runtime is not available, so it cannot read the histories")
    interrupt = signal.getsignal(signal.SIGINT)
    settings = {"spark.master": "local[1]", "spark.driver.memory": "1g", **QUICK, **found}
    session, _ = make_session(settings)
    signal.signal(signal.SIGINT, interrupt)  # Spark's own would only stop its jobs
    try:
        yield session.sql
    finally:
        session.stop()


def attempt(ground: Ground, seed: str, number: int, places: list[int]) -> Done:
    """Run one history; raises `Divergence`."""
    history, reader = ground.run(number, sources(seed, number, places))
    feeds = 0
    if ground.way.changes:
        feeds = check_changes(history, random.Random(f"{seed}:{number}:changes"))
    shutil.rmtree(history.table.location.removeprefix("file://"), ignore_errors=True)
    return Done(number, history.operations, reader=reader, feeds=feeds)


def cut_down(ground: Ground, seed: str, number: int, places: list[int]) -> Divergence | None:
    """Return the divergence of the shortest history that still has one, steps taken out singly."""
    found = None
    for place in reversed(places):
        fewer = [each for each in places if each != place]
        try:
            attempt(ground, seed, number, fewer)
        except Divergence as error:
            places, found = fewer, error
    return found


def outcome_of(seed: str, steps: int, number: int) -> Done:
    """Run one history on this process's ground; one that goes wrong is cut down."""
    (ground,), places = _GROUNDS, list(range(1, steps + 1))
    try:
        return attempt(ground, seed, number, places)
    except Divergence as error:
        return Done(number, divergence=str(cut_down(ground, seed, number, places) or error))


# --- many


def start(folder: str, way: Way) -> None:
    """Give this process a ground of its own in a folder."""
    _GROUNDS[:] = [Ground(tempfile.mkdtemp(dir=folder), way)]
    gc.freeze()  # what is loaded stays, and need not be scanned by every collection


def start_job(folder: str, way: Way) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends all
    tempfile.tempdir = folder
    start(folder, way)


def outcomes(numbers: range, tally: Tally, folder: str, *, jobs: int, way: Way) -> Iterator[Done]:
    """Yield the histories in the order of their numbers."""
    work = partial(outcome_of, tally.seed, tally.steps)
    if jobs == 1:
        start(folder, way)
        with _PROCESS:
            yield from map(work, numbers)
        return
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), start_job, (folder, way))
    try:
        yield from pool.map(work, numbers)
    finally:
        pool.shutdown(cancel_futures=True)


def fuzz(arguments: argparse.Namespace, tally: Tally, folder: str) -> None:
    """Run the histories and count them; each divergence is printed when it is found."""
    reported = monotonic()
    numbers = range(arguments.first, arguments.first + arguments.histories)
    way = Way(arguments.format, arguments.changes, arguments.index)
    found = outcomes(numbers, tally, folder, jobs=arguments.jobs, way=way)
    with closing(found):
        for done in found:
            tally.add(done)
            if done.divergence is not None:
                print(f"\nhistory {done.number} of seed {tally.seed}\n{done.divergence}\n")
            if monotonic() - reported > REPORT_SECONDS:
                print(tally, flush=True)
                reported = monotonic()
            if len(tally.failed) >= arguments.most_failures:
                return
            if monotonic() - tally.started > arguments.seconds:
                return


def cores() -> int:
    """Return how many cores this process may use."""
    held = getattr(os, "sched_getaffinity", None)
    return len(held(0)) if held else os.cpu_count() or 1


def scratch() -> str | None:
    """Return a folder in memory, if there is one and no other was requested."""
    return str(MEMORY) if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first history")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--seed", help="any text; a random one is chosen and printed by default")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--most-failures", type=int, default=1)
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0])
    parser.add_argument("--changes", action="store_true", help="replay change feeds")
    parser.add_argument("--index", action="store_true", help="tables with a key index, damaged")
    parser.add_argument("--jobs", type=int, default=cores(), help="processes; one per core")
    arguments = parser.parse_args()
    seed = arguments.seed or str(random.SystemRandom().randrange(10**9))
    print(f"seed {seed}", flush=True)
    tally = Tally(seed, arguments.steps)
    stopped = False
    with tempfile.TemporaryDirectory(prefix="rowlake-fuzz-", dir=scratch()) as folder:
        tempfile.tempdir = folder
        try:
            fuzz(arguments, tally, folder)
        except KeyboardInterrupt:
            stopped = True
    print(f"{tally}{' (stopped)' if stopped else ''}")
    sys.exit(130 if stopped else 1 if tally.failed else 0)


if __name__ == "__main__":
    main()
