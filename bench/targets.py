"""What rowlake promises, as numbers that a run can check.

A target compares the median of a metric of one step: with the best of some peers (`against`), or
with a fixed figure. `at_most` bounds ours / theirs (or ours / 1 for a fixed figure); `at_least` is
the reverse. Where several metrics are given each must hold, and the worst is reported. A target may
compare with another step (`against_step`), its own system's too.

Medians alone decide nothing: a target is met (or not) only if it is so at both ends of the spread
of the samples, and a figure of time needs three samples of either side. Else it is undecided.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bench.measure import Measurement

LEAST_SAMPLES = 3


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
    """Whether a run met a target: met, not met, undecided, or not measured.

    `low` and `high` are the ratio at the ends of the spread, `samples` those of ours and of the
    peer; `missing` are the peers that were to be compared with and were not measured.
    """

    target: Target
    outcome: str
    metric: str = ""
    ours: float | None = None
    theirs: float | None = None
    peer: str = ""
    ratio: float | None = None
    missing: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    samples: tuple[int, ...] = ()
    place: str = ""

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
        return _fixed(target, metric, ours)
    best = min(peers, key=lambda peer: peer.median(metric))
    least, most = best.spread(metric)
    mine = ours.spread(metric)
    missing = tuple(name for name in target.against if name not in found)
    ratio = _ratio(value, best.median(metric))
    low, high = _ratio(mine[0], most), _ratio(mine[1], least)
    counts = (len(ours.samples), len(best.samples))
    return Verdict(
        target,
        _outcome(target, metric, (low, high), counts),
        metric,
        value,
        best.median(metric),
        best.system,
        ratio,
        missing,
        low,
        high,
        counts,
        ours.place,
    )


def _fixed(target: Target, metric: str, ours: Measurement) -> Verdict:
    figure = target.at_most if target.at_most is not None else target.at_least
    value, ends, counts = ours.median(metric), ours.spread(metric), (len(ours.samples),)
    ratio, low, high = (one / figure if figure else None for one in (value, *ends))
    outcome = _outcome(target, metric, ends, counts)
    return Verdict(
        target,
        outcome,
        metric,
        value,
        figure,
        "the figure",
        ratio,
        (),
        low,
        high,
        counts,
        ours.place,
    )


def _ratio(ours: float, theirs: float) -> float:
    return ours / theirs if theirs else float("inf")


def _outcome(
    target: Target, metric: str, ends: tuple[float, float], counts: tuple[int, ...]
) -> str:
    """Return met or not met where both ends of the spread say so and there are enough samples."""
    held = {_holds(target, end) for end in ends}
    if len(held) > 1 or (is_of_time(metric) and min(counts) < LEAST_SAMPLES):
        return "undecided"
    return "met" if held == {True} else "not met"


def is_of_time(metric: str) -> bool:
    """Return whether a metric varies from run to run: counts of files or rows do not."""
    return metric.endswith("_s")


def _holds(target: Target, value: float) -> bool:
    if target.at_most is not None and value > target.at_most:
        return False
    return not (target.at_least is not None and value < target.at_least)


def _badness(verdict: Verdict) -> int:
    return {"met": 0, "not measured": 1, "undecided": 2, "not met": 3}[verdict.outcome]


def _distance(verdict: Verdict) -> float:
    if verdict.ratio is None:
        return 0.0
    return -verdict.ratio if verdict.target.at_least is not None else verdict.ratio
