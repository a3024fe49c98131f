"""Terminal output of a run: lines while it runs, tables at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from bench.case import Case, Contestant
    from bench.measure import Measurement, Sample
    from bench.rounds import Outcome
    from bench.targets import Verdict

COLOURS = {"met": "green", "not met": "red", "undecided": "yellow", "not measured": "yellow"}
OURS = "rowlake"
# Ratios shown next to a sample of ours: those to the quickest peers so far.
RATIOS = 3


def progress_bar(console: Console) -> Progress:
    return Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class CaseView:
    """The lines of one case: what runs now, every sample, and its ratio to the others so far."""

    def __init__(self, console: Console, case: Case, contestants: list[Contestant], rounds: int):
        self.console = console
        self.ours = case.ours
        self.progress = progress_bar(console)
        self.latest: dict[tuple[str, int], dict[str, Sample]] = {}
        turns = sum(
            len(c.steps) * (case.warmups * c.needs_warmup + min(rounds, c.max_rounds or rounds))
            for c in contestants
        )
        self.task = self.progress.add_task(case.name, total=turns)

    def __enter__(self) -> CaseView:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def sample(self, system: str, step: str, number: int, sample: Sample) -> None:
        others = self.latest.setdefault((step, number), {})
        ratios = self._ratios(system, sample, others)
        others[system] = sample
        label = "warm-up" if number < 0 else f"round {number + 1}"
        self.progress.advance(self.task)
        self.console.print(
            f"  [dim]{label:8}[/] {step:14} {system:17} {seconds(sample.wall_s):>9} "
            f"[dim]({seconds(sample.cpu_s)} CPU)[/]  {ratios}",
            highlight=False,
        )

    def _ratios(self, system: str, sample: Sample, others: dict[str, Sample]) -> str:
        """Return the ratio to ours; for one of ours, those to the peers that were before it."""
        if system.startswith(OURS):
            peers = {name: s for name, s in others.items() if not name.startswith(OURS)}
            best = sorted(peers, key=lambda name: peers[name].wall_s)[:RATIOS]
            return ", ".join(ratio_text(sample, peers[name], name) for name in best)
        return ratio_text(sample, others[self.ours], self.ours) if self.ours in others else ""

    def failure(self, system: str, message: str) -> None:
        self.console.print(f"  [red]{system} is out:[/] {message[:300]}", markup=True)


def ratio_text(ours: Sample, theirs: Sample, name: str) -> str:
    if not theirs.wall_s:
        return ""
    return f"{ours.wall_s / theirs.wall_s:.2f}× {name}"


def seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if abs(value) < 1 else f"{value:.2f} s"


def spread_text(low: float, high: float, samples: int) -> str:
    """Return how many samples a median is of, and how far they lie apart."""
    return f"{samples}: {seconds(low)} – {seconds(high)}"


def ratio_range(ratio: float | None, low: float | None, high: float | None) -> str:
    """Return a ratio with those at the ends of the spread."""
    if ratio is None:
        return ""
    if low is None or high is None or f"{low:.2f}" == f"{high:.2f}":
        return f"{ratio:.2f}×"
    return f"{ratio:.2f}× ({low:.2f} – {high:.2f})"


def size(value: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if abs(value) < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError


def measured_size(value: float) -> str:
    """Return a size, or nothing where a system that reports its own cost did not say it."""
    return size(value) if value else ""


def quantity(metric: str, value: float) -> str:
    """Return a value with the unit that its metric's name ends in."""
    if metric.endswith("_per_s"):
        return f"{value:,.0f}/s"
    if metric.endswith("_s"):
        return seconds(value)
    if metric.endswith("_bytes"):
        return size(value)
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.2f}"


def case_table(outcome: Outcome, title: str, ours: str = OURS) -> Table:
    """Return the medians of one case, with each system's cost relative to ours."""
    table = Table(title=title, title_justify="left")
    left = ("step", "system", "ran in")
    right = ("wall", "samples", "CPU", f"× {ours}", "peak memory", "read", "facts")
    for column in (*left, *right):
        table.add_column(column, justify="left" if column in left else "right")
    for found in sorted(outcome.measurements, key=lambda found: found.step):
        if found.samples:
            table.add_row(*_cells(found, outcome.measurements, ours))
    return table


def _cells(found: Measurement, measurements: Iterable[Measurement], name: str) -> list[str]:
    ours = [m for m in measurements if m.system == name and m.step == found.step and m.samples]
    wall = found.median("wall_s")
    ratio = f"{wall / ours[0].median('wall_s'):.2f}" if ours else ""
    facts = [name for name in found.metrics() if name in found.samples[0].facts]
    facts = [name for name in facts if found.median(name)]
    return [
        found.step,
        found.system,
        found.place,
        seconds(wall),
        spread_text(*found.spread("wall_s"), len(found.samples)),
        seconds(found.median("cpu_s")),
        ratio,
        measured_size(found.median("peak_bytes")),
        measured_size(found.median("read_bytes")),
        ", ".join(f"{name} {quantity(name, found.median(name))}" for name in facts),
    ]


def verdict_table(verdicts: Iterable[Verdict]) -> Table:
    table = Table(title="Targets", title_justify="left")
    for column in ("target", "ours", "compared with", "ratio", ""):
        table.add_column(column, justify="left" if column == "target" else "right")
    for verdict in verdicts:
        table.add_row(
            verdict.target.text,
            "" if verdict.ours is None else quantity(verdict.metric, verdict.ours),
            _beside(verdict),
            ratio_range(verdict.ratio, verdict.low, verdict.high),
            f"[{COLOURS[verdict.outcome]}]{verdict.outcome}[/]",
        )
    return table


def _beside(verdict: Verdict) -> str:
    if verdict.theirs is None:
        return ""
    told = f"{verdict.peer}: {quantity(verdict.metric, verdict.theirs)}"
    return told + without(verdict.missing)


def without(missing: Iterable[str]) -> str:
    """Return text that names the peers missing from a comparison."""
    names = ", ".join(missing)
    return f" (without {names})" if names else ""
