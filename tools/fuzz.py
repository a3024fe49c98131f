"""Run many random histories of row-level changes, as `make fuzz` does.

Comes in: how many histories, the seed, the number of steps of each, how many seconds at most. Goes
out: the seed, the number of histories and operations, and the first history that went wrong, cut
down to the steps that it needs. A history has a number, and comes out the same whenever seed,
number and steps are the same.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.histories.driver import driver_lake, run, tight_limits
from tests.histories.history import Divergence, run_history

REPORT_SECONDS = 30


@dataclass
class Tally:
    seed: str
    steps: int
    histories: int = 0
    operations: int = 0
    failed: list[int] = field(default_factory=list)
    started: float = field(default_factory=monotonic)

    def __str__(self) -> str:
        return (
            f"seed {self.seed}, {self.steps} steps: {self.histories} histories, "
            f"{self.operations} operations, {len(self.failed)} divergences "
            f"in {monotonic() - self.started:.0f} s"
        )


def sources(seed: str, number: int, places: list[int]) -> list[random.Random]:
    """Return the randomness of a history: of the table, and of the steps at some places."""
    return [random.Random(f"{seed}:{number}:{place}") for place in (0, *places)]


def attempt(lake: Any, seed: str, number: int, places: list[int]) -> int:
    """Run one history and return how many operations it had; raises `Divergence`."""
    with tight_limits(tight=number % 2 == 0):
        history = run_history(lake, sources(seed, number, places), run)
    shutil.rmtree(history.table.location.removeprefix("file://"), ignore_errors=True)
    return history.operations


def cut_down(lake: Any, seed: str, number: int, places: list[int]) -> Divergence | None:
    """Return the divergence of the shortest history that still has one, steps taken out singly."""
    found = None
    for place in reversed(places):
        fewer = [each for each in places if each != place]
        try:
            attempt(lake, seed, number, fewer)
        except Divergence as error:
            places, found = fewer, error
    return found


def fuzz(lake: Any, arguments: argparse.Namespace, seed: str) -> Tally:
    tally, reported = Tally(seed, arguments.steps), monotonic()
    places = list(range(1, arguments.steps + 1))
    for number in range(arguments.first, arguments.first + arguments.histories):
        try:
            tally.operations += attempt(lake, seed, number, places)
        except Divergence as error:
            tally.failed.append(number)
            shown = cut_down(lake, seed, number, places) or error
            print(f"\nhistory {number} of seed {seed}\n{shown}\n", flush=True)
            if len(tally.failed) >= arguments.most_failures:
                return tally
        tally.histories += 1
        if monotonic() - reported > REPORT_SECONDS:
            print(tally, flush=True)
            reported = monotonic()
        if monotonic() - tally.started > arguments.seconds:
            break
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first history")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--seed", help="any text; made up, and told, where none is given")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--most-failures", type=int, default=1)
    arguments = parser.parse_args()
    seed = arguments.seed or str(random.SystemRandom().randrange(10**9))
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="rowlake-fuzz-") as folder, driver_lake(folder) as lake:
        tally = fuzz(lake, arguments, seed)
    print(tally)
    sys.exit(1 if tally.failed else 0)


if __name__ == "__main__":
    main()
