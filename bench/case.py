"""The parts of a benchmark case.

A case names its contestants; each contestant is a system with the steps it does in a round.
`bench.rounds` interleaves them. A step's `truth` turns its answer into a value that must be equal
for all systems that took the step in the same round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bench.lab import Lab


@dataclass(frozen=True)
class Step:
    """One measured act.

    `before` runs before the clock starts; `facts`, called after it has stopped, are added to the
    sample. A step that `loops` may be repeated, and is where it is short; one that does its act
    several `times` in a call is charged for one of them.
    """

    name: str
    run: Callable[[], Any]
    truth: Callable[[Any], Any] | None = None
    facts: Callable[[], dict[str, float]] | None = None
    before: Callable[[], None] | None = None
    loops: bool = False
    times: int = 1


@dataclass(frozen=True)
class Contestant:
    """A system in a case.

    `prepare` (called with the round; below 0 is warm-up) and `finish` are outside the measured time
    of a round; `close` is called when the case is over for this system. A peer that is slow stops
    after three samples (`bench.rounds`), or after `max_rounds`, which is never less than three but
    where the case takes minutes. One that starts a fresh process each time, or has run similar work
    before, needs no warm-up rounds.
    """

    system: str
    steps: tuple[Step, ...]
    prepare: Callable[[int], None] | None = None
    finish: Callable[[], None] | None = None
    close: Callable[[], None] | None = None
    max_rounds: int | None = None
    needs_warmup: bool = True


@dataclass(frozen=True)
class Case:
    """A workload; `contestants` may build shared tables, which is not measured.

    `ours` is the system that the others are compared with. A case that takes long runs
    only when it is named, or with --full. One that is `on_cluster` runs again at the end, on
    executors that are processes of their own.
    """

    name: str
    title: str
    contestants: Callable[[Lab], list[Contestant]]
    rounds: int = 3
    warmups: int = 1
    ours: str = "rowlake"
    only_full: bool = False
    with_delta: bool = False
    on_cluster: bool = False


def entrants(names: Iterable[str], make: Callable[[str], Contestant]) -> list[Contestant]:
    """Make a contestant of every system; one that cannot be made fails in its first turn."""
    return [_entrant(name, make) for name in names]


def _entrant(name: str, make: Callable[[str], Contestant]) -> Contestant:
    try:
        return make(name)
    except Exception as error:  # noqa: BLE001 - the other systems go on; rounds report it
        caught = error

    def fail(_: int) -> None:
        raise caught

    return Contestant(name, (), prepare=fail)
