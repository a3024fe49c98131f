"""Run a case: systems interleaved, round by round, warm-up first, rows checked every round.

The order changes from round to round, so that no system always runs right after the same other one.
Every system gets at least three samples; a slow peer gets no more than that, rowlake all rounds.
A system that fails is out of the case, and the failure is part of the result; so is every
disagreement on the truth. What a system cannot do yet, or does too slowly to wait for, is a note,
not a failure.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bench.measure import DRIVER, SPARK_TASKS, Measurement, Sample, measure

if TYPE_CHECKING:
    from bench.case import Case, Contestant

OnSample = Callable[[str, str, int, Sample], None]
OnFailure = Callable[[str, str], None]
Counters = Callable[[], dict[str, float]]
NOT_YET = ("UnsupportedFeatureError",)
OURS = "rowlake"
LEAST_SAMPLES = 3
# A peer that has taken so long in a case is not asked for more samples than the least.
SLOW_S = 20.0


class Skipped(Exception):
    """Raised by a system that does not take part, with the reason."""


@dataclass
class Outcome:
    """What running one case gave."""

    case: str
    measurements: list[Measurement] = field(default_factory=list)
    truths: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, str]] = field(default_factory=list)
    notes: list[dict[str, str]] = field(default_factory=list)

    def of(self, step: str, system: str) -> Measurement:
        """Return the measurement of a step on a system, made when it is new."""
        for found in self.measurements:
            if (found.step, found.system) == (step, system):
                return found
        made = Measurement(self.case, step, system)
        self.measurements.append(made)
        return made

    @property
    def disagreements(self) -> list[dict[str, Any]]:
        return [truth for truth in self.truths if not truth["equal"]]

    def out(self, system: str, number: int, error: Exception) -> str:
        """Note why a system is out from this round on; return the words for it."""
        kind = type(error).__name__
        if isinstance(error, Skipped) or kind in NOT_YET:
            message = str(error) if isinstance(error, Skipped) else f"not yet: {error}"
            self.notes.append({"system": system, "round": str(number), "message": message})
            return message
        message = first_words(error)
        trace = "".join(traceback.format_exception(error))
        self.failures.append(
            {"system": system, "round": str(number), "message": message, "trace": trace}
        )
        return message


def run_rounds(
    case: Case,
    contestants: list[Contestant],
    rounds: int,
    *,
    on_sample: OnSample = lambda *_: None,
    on_failure: OnFailure = lambda *_: None,
    counters: Counters = dict,
) -> Outcome:
    """Run all rounds of a case and return what was measured; rounds below 0 are warm-up.

    `counters` is read before and after every step; what it grew by joins the sample's facts.
    """
    outcome, alive = Outcome(case.name), list(contestants)
    try:
        for number in range(-case.warmups, rounds):
            truths: dict[str, dict[str, str]] = {}
            for contestant in _in_turn(alive, number):
                if not _takes_part(contestant, number) or _has_enough(outcome, contestant, number):
                    continue
                try:
                    _one_turn(outcome, contestant, number, truths, on_sample, counters)
                except Exception as error:  # noqa: BLE001 - a peer's failure is a result, not ours
                    alive.remove(contestant)
                    on_failure(contestant.system, outcome.out(contestant.system, number, error))
            _compare(outcome, number, truths)
    finally:
        for contestant in contestants:
            _close(contestant)
    return outcome


def _close(contestant: Contestant) -> None:
    """Free what a system holds; where that fails (its JVM is gone) the figures still count."""
    if contestant.close:
        with suppress(Exception):
            contestant.close()


def first_words(error: Exception) -> str:
    """Return what an error says first; py4j puts Java's own words on the second line."""
    lines = f"{type(error).__name__}: {error}".splitlines()
    return " ".join(lines[:2]) if len(lines) > 1 and lines[1].startswith(":") else lines[0]


def _in_turn(contestants: list[Contestant], number: int) -> list[Contestant]:
    first = number % len(contestants) if contestants else 0
    return contestants[first:] + contestants[:first]


def _takes_part(contestant: Contestant, number: int) -> bool:
    if number < 0:
        return contestant.needs_warmup
    return contestant.max_rounds is None or number < contestant.max_rounds


def _has_enough(outcome: Outcome, contestant: Contestant, number: int) -> bool:
    """Return whether a peer is slow and has the samples that it needs; ours take every round."""
    if number < LEAST_SAMPLES or contestant.system.startswith(OURS):
        return False
    spent = [
        sample.wall_s * sample.repetitions
        for found in outcome.measurements
        if found.system == contestant.system
        for sample in found.samples
    ]
    return sum(spent) > SLOW_S


def _one_turn(
    outcome: Outcome,
    contestant: Contestant,
    number: int,
    truths: dict[str, dict[str, str]],
    on_sample: OnSample,
    counters: Counters,
) -> None:
    if contestant.prepare:
        contestant.prepare(number)
    try:
        for step in contestant.steps:
            if step.before:
                step.before()
            before = counters()
            sample, answer = measure(step.run, loops=step.loops, times=step.times)
            sample = _placed(sample, _grown(before, counters()))
            if step.facts:
                sample.facts.update(step.facts())
            if number >= 0:
                outcome.of(step.name, contestant.system).samples.append(sample)
            on_sample(contestant.system, step.name, number, sample)
            if step.truth:
                truths.setdefault(step.name, {})[contestant.system] = digest(step.truth(answer))
    finally:
        if contestant.finish:
            contestant.finish()


def _grown(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {name: after[name] - before.get(name, 0.0) for name in after}


def _placed(sample: Sample, counted: dict[str, float]) -> Sample:
    """Return the sample with Spark's counters, and with its place where it did not say so."""
    each = {name: value / sample.repetitions for name, value in counted.items()}
    place = sample.place or (SPARK_TASKS if counted.get("spark_tasks") else DRIVER)
    return replace(sample, facts={**sample.facts, **each}, place=place)


def digest(value: Any) -> str:
    """Return a short name for a value; equal values have equal names."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def _compare(outcome: Outcome, number: int, truths: dict[str, dict[str, str]]) -> None:
    for step, by_system in truths.items():
        outcome.truths.append(
            {
                "step": step,
                "round": number,
                "equal": len(set(by_system.values())) == 1,
                "digests": by_system,
            }
        )
