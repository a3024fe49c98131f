"""Mutate the files of tables and run everything on them, as `make hostile` does.

Comes in: how many cases, the seed, the number of the first, how many processes. Goes out: counts of
cases and of the outcomes of their operations, and every finding: what was mutated, which operation,
the trace. Table formats take turns, unless `--format` names one. The same format, seed and number
always give the same case, so `--format delta --seed 7 --first 123 --cases 1` runs it again;
`--keep` takes a folder for copies of the tables that findings were made on.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.hostile.fence import can_fence
from tests.hostile.runner import FORMATS, Ground, case_of, every_meaning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hostile.runner import Case, Outcome

REPORT_SECONDS = 30
MEMORY = Path("/dev/shm")


@dataclass
class Tally:
    """Outcomes of the cases so far."""

    seed: str
    cases: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    slowest: float = 0.0
    grown: int = 0
    started: float = field(default_factory=monotonic)

    def add(self, outcome: Outcome) -> None:
        self.cases += 1
        self.operations.update(outcome.operations)
        self.slowest = max(self.slowest, outcome.seconds)
        self.grown = max(self.grown, outcome.grown)
        case = outcome.case
        self.failed += [f"{case.format} {case.number}"] if outcome.findings else []

    def __str__(self) -> str:
        done, refused = self.operations["done"], self.operations["refused"]
        return (
            f"seed {self.seed}: {self.cases} cases in {monotonic() - self.started:.0f} s, "
            f"{len(self.failed)} with findings; operations: {done} done, {refused} refused, "
            f"{self.operations['foreign']} foreign errors, {self.operations['wrong']} wrong; "
            f"slowest case {self.slowest:.1f} s, most memory {self.grown >> 20} MB"
        )

    def places(self) -> str:
        """Return how many cases have a finding at each place."""
        return "\n".join(f"{count:6}  {place}" for place, count in self.findings.most_common())


def outcomes(arguments: argparse.Namespace, seed: str, folder: Path) -> Iterator[Outcome]:
    """Yield the outcomes of the cases, in the order of their numbers."""
    grounds: SimpleQueue[Ground] = SimpleQueue()
    with ExitStack() as stack:
        for job in range(arguments.jobs):
            root = folder / str(job)
            root.mkdir()
            grounds.put(stack.enter_context(Ground(root)))

        def run(case: Case) -> Outcome:
            ground = grounds.get()
            try:
                outcome = ground.run(case)
                if outcome.findings and arguments.keep:
                    keep(ground, outcome, Path(arguments.keep))
                return outcome
            finally:
                grounds.put(ground)

        pool = stack.enter_context(ThreadPoolExecutor(arguments.jobs))
        stack.callback(pool.shutdown, cancel_futures=True)
        yield from pool.map(run, cases(arguments, seed))


def cases(arguments: argparse.Namespace, seed: str) -> list[Case]:
    """Return the cases, of all formats in turn."""
    formats = [arguments.format] if arguments.format else list(FORMATS)
    by_format = [list(_of_format(arguments, seed, one, len(formats))) for one in formats]
    turns = (one for turn in zip_longest(*by_format) for one in turn)
    return [one for one in turns if one is not None and arguments.only in one.name]


def _of_format(
    arguments: argparse.Namespace, seed: str, table_format: str, formats: int
) -> Iterator[Case]:
    """Yield the cases of one format; the numbers of meanings are even."""
    first, step, count = arguments.first, 1, -(-arguments.cases // formats)
    if arguments.every:
        first, step, count = 0, 2, every_meaning(seed, table_format)
    for number in range(first, first + step * count, step):
        yield case_of(seed, number, table_format)


def keep(ground: Ground, outcome: Outcome, folder: Path) -> None:
    """Write a finding, and the table as the mutation left it before anything was run."""
    case = outcome.case
    target = folder / f"{case.format}-{case.seed}-{case.number}"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    (target / "finding.txt").write_text(str(outcome))
    ground.mutated(outcome.case)
    shutil.copytree(ground.arena / "lake", target / "lake", symlinks=True, ignore=_special)


def _special(folder: str, names: list[str]) -> list[str]:
    """Return what cannot be copied: pipes."""
    return [name for name in names if Path(folder, name).is_fifo()]


def run_all(arguments: argparse.Namespace, tally: Tally, folder: Path) -> None:
    """Run the cases; findings are printed when they are made, each place once."""
    reported = monotonic()
    for outcome in outcomes(arguments, tally.seed, folder):
        tally.add(outcome)
        places = {found.place for found in outcome.findings}
        if places - set(tally.findings) or (places and arguments.verbose):
            print(f"\n{outcome}\n", flush=True)
        tally.findings.update(places)
        if monotonic() - reported > REPORT_SECONDS:
            print(tally, flush=True)
            reported = monotonic()


def cores() -> int:
    held = getattr(os, "sched_getaffinity", None)
    return len(held(0)) if held else os.cpu_count() or 1


def main() -> None:
    if not can_fence():
        sys.exit("This machine has no Landlock, without which no case is run.")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--every", action="store_true", help="each mutation of a meaning once")
    parser.add_argument("--format", choices=sorted(FORMATS), help="tables of one format alone")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", help="any text; a random one is chosen and printed by default")
    parser.add_argument("--jobs", type=int, default=cores(), help="processes; one per core")
    parser.add_argument("--keep", help="folder for tables that findings were made on")
    parser.add_argument("--only", default="", help="cases with this text in their names")
    parser.add_argument("--verbose", action="store_true", help="print findings of known places too")
    arguments = parser.parse_args()
    seed = arguments.seed or str(random.SystemRandom().randrange(10**9))
    print(f"seed {seed}", flush=True)
    tally, stopped = Tally(seed), False
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # leave nothing behind then either
    shared = str(MEMORY) if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="rowlake-hostile-", dir=shared) as folder:
        try:
            run_all(arguments, tally, Path(folder))
        except KeyboardInterrupt:
            stopped = True
    if tally.failed:
        print(f"{tally.places()}\ncases with findings: {', '.join(tally.failed)}")
    print(f"{tally}{' (stopped)' if stopped else ''}")
    sys.exit(130 if stopped else 1 if tally.failed else 0)


if __name__ == "__main__":
    main()
