"""What rowlake promises, as numbers that a run can check.

A target compares the median of a metric of one step: with the best of some peers (`against`),
or with a fixed figure. `at_most` bounds ours / theirs (or ours / 1 for a fixed figure);
`at_least` turns it round. Where several metrics are given each must hold, and the worst is
reported.
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


@dataclass(frozen=True)
class Verdict:
    """Whether a run met a target: met, not met, or not measured."""

    target: Target
    outcome: str
    metric: str = ""
    ours: float | None = None
    theirs: float | None = None
    peer: str = ""
    ratio: float | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def judge(target: Target, measurements: Iterable[Measurement]) -> Verdict:
    """Return what the measurements say about the target."""
    found = {
        m.system: m
        for m in measurements
        if (m.case, m.step) == (target.case, target.step) and m.samples
    }
    ours = found.get(target.system)
    if ours is None:
        return Verdict(target, "not measured")
    verdicts = [_judge_metric(target, metric, ours, found) for metric in target.metrics]
    return max(verdicts, key=lambda verdict: (_badness(verdict), _distance(verdict)))


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
    return Verdict(target, outcome, metric, value, theirs, best.system, ratio)


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


SPINE = [
    Target(
        "Full-scan aggregate within 1.1× of spark.read.parquet on the same files",
        "read_full",
        "aggregate",
        against=("spark-parquet",),
        at_most=1.1,
    ),
    Target(
        "A range filter on a sort column reads only the row groups it must",
        "read_filter",
        "filter",
        metrics=("read_to_needed",),
        at_most=1.25,
    ),
    Target(
        "1 % of rows deleted by v3 vectors: read no slower than Iceberg Java",
        "read_deletes",
        "v3 vectors",
        against=("iceberg-java",),
        at_most=1.0,
    ),
    Target(
        "1 % of rows deleted by v2 position deletes: read no slower than Iceberg Java",
        "read_deletes",
        "v2 positions",
        against=("iceberg-java",),
        at_most=1.0,
    ),
    *(
        Target(
            f"{case} ({step}) {promise}",
            case,
            step,
            against=(peer,),
            at_most=limit,
        )
        for case in ("append", "ctas")
        for step in ("bucketed", "unpartitioned")
        for promise, peer, limit in (
            ("within 1.1× of df.write.parquet", "spark-parquet", 1.1),
            ("no slower than Iceberg Java", "iceberg-java", 1.0),
        )
    ),
    Target(
        "Planning 200 000 files cold: at least 200 000 files/s",
        "planning_200k",
        "cold",
        metrics=("files_per_s",),
        at_least=200_000,
    ),
    Target(
        "Planning 200 000 files cold: at least 10× PyIceberg's rate",
        "planning_200k",
        "cold",
        metrics=("wall_s",),
        against=("pyiceberg",),
        at_most=0.1,
    ),
    Target(
        "Planning 200 000 files cold: level with Iceberg Java's core",
        "planning_200k",
        "cold",
        metrics=("wall_s",),
        against=("iceberg-java",),
        at_most=1.0,
    ),
    Target(
        "Planning 200 000 files again, cached: under 0.2 s",
        "planning_200k",
        "warm",
        metrics=("wall_s",),
        at_most=0.2,
    ),
    Target(
        "Planning 200 000 files: memory under 1 GB",
        "planning_200k",
        "cold",
        metrics=("peak_bytes",),
        at_most=1e9,
    ),
    Target(
        "Writing manifests: at least 50 000 entries/s",
        "manifest_write",
        "write",
        metrics=("entries_per_s",),
        at_least=50_000,
    ),
    Target(
        "An empty task of the engine: at most 0.08 s of CPU",
        "empty_task",
        "tasks",
        metrics=("cpu_per_task_s",),
        at_most=0.08,
    ),
    Target("import rowlake: under 0.3 s", "startup", "import", metrics=("wall_s",), at_most=0.3),
    Target("rowlake tables: under 1.5 s", "startup", "tables", metrics=("wall_s",), at_most=1.5),
    Target(
        "INSERT of 10 rows into an open lake, warm: under 0.3 s",
        "insert",
        "10 rows",
        metrics=("wall_s",),
        at_most=0.3,
    ),
]

TARGETS = [*SPINE]
