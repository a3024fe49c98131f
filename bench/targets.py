"""What rowlake promises, as numbers that a run can check.

A target compares the median of a metric of one step: with the best of some peers (`against`), or
with a fixed figure. `at_most` bounds ours / theirs (or ours / 1 for a fixed figure); `at_least` is
the reverse. Where several metrics are given each must hold, and the worst is reported. A target may
compare with another step (`against_step`), its own system's too.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bench.measure import Measurement


@dataclass(frozen=True)
class Target:
    """One promise about one step of one case."""

    text: str
    case: str
    step: str
    metrics: tuple[str, ...] = ("wall_s", "cpu_s")
    against: tuple[str, ...] = ()
    at_most: float | None = None
    at_least: float | None = None
    system: str = "rowlake"
    area: str = "spine"
    against_step: str = ""


@dataclass(frozen=True)
class Verdict:
    """Whether a run met a target: met, not met, or not measured.

    `missing` are the peers that were to be compared with and were not measured.
    """

    target: Target
    outcome: str
    metric: str = ""
    ours: float | None = None
    theirs: float | None = None
    peer: str = ""
    ratio: float | None = None
    missing: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def judge(target: Target, measurements: Iterable[Measurement]) -> Verdict:
    """Return what the measurements say about the target."""
    measured = [m for m in measurements if m.case == target.case and m.samples]
    ours = _by_system(measured, target.step).get(target.system)
    if ours is None:
        return Verdict(target, "not measured")
    found = _by_system(measured, target.against_step or target.step)
    verdicts = [_judge_metric(target, metric, ours, found) for metric in target.metrics]
    return max(verdicts, key=lambda verdict: (_badness(verdict), _distance(verdict)))


def _by_system(measured: Iterable[Measurement], step: str) -> dict[str, Measurement]:
    return {m.system: m for m in measured if m.step == step}


def judge_all(targets: Iterable[Target], measurements: Iterable[Measurement]) -> list[Verdict]:
    kept = list(measurements)
    return [judge(target, kept) for target in targets]


def _judge_metric(
    target: Target, metric: str, ours: Measurement, found: dict[str, Measurement]
) -> Verdict:
    if metric not in ours.metrics():
        return Verdict(target, "not measured", metric)
    value = ours.median(metric)
    peers = [found[name] for name in target.against if name in found]
    peers = [peer for peer in peers if metric in peer.metrics()]
    if target.against and not peers:
        return Verdict(target, "not measured", metric, value)
    if not peers:
        return _fixed(target, metric, value)
    best = min(peers, key=lambda peer: peer.median(metric))
    theirs = best.median(metric)
    ratio = value / theirs if theirs else float("inf")
    outcome = "met" if _holds(target, ratio) else "not met"
    missing = tuple(name for name in target.against if name not in found)
    return Verdict(target, outcome, metric, value, theirs, best.system, ratio, missing)


def _fixed(target: Target, metric: str, value: float) -> Verdict:
    figure = target.at_most if target.at_most is not None else target.at_least
    outcome = "met" if _holds(target, value) else "not met"
    ratio = value / figure if figure else None
    return Verdict(target, outcome, metric, value, figure, "the figure", ratio)


def _holds(target: Target, value: float) -> bool:
    if target.at_most is not None and value > target.at_most:
        return False
    return not (target.at_least is not None and value < target.at_least)


def _badness(verdict: Verdict) -> int:
    return {"met": 0, "not measured": 1, "not met": 2}[verdict.outcome]


def _distance(verdict: Verdict) -> float:
    if verdict.ratio is None:
        return 0.0
    return -verdict.ratio if verdict.target.at_least is not None else verdict.ratio
