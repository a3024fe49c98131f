"""`optimize`: look at a table and run what pays, within a budget.

Comes in: a table. Goes out: the table after the last step, and a report that says why each step ran
or did not. What pays is told by `costs`. Every step commits by itself, compaction in parts, so what
was done before an error or Ctrl-C stays done, and the next run goes on there: files that are fine
are not picked again. A step that loses against another writer gives way; no
writer fails because of it.
"""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from rowlake.errors import CommitConflictError, InvalidStatementError, UnsupportedFeatureError
from rowlake.maintain.autopilot.advice import advice
from rowlake.maintain.autopilot.costs import NoStep, Step, balance, propose
from rowlake.maintain.autopilot.health import health_of
from rowlake.maintain.autopilot.optimize_steps import Limits, Outcome, run_step
from rowlake.maintain.autopilot.survey import survey
from rowlake.maintain.guard import check_outside_transaction
from rowlake.maintain.key_index import fill_index, missing_indexes
from rowlake.model.health import count_text
from rowlake.model.report import Report
from rowlake.sqltext.lexer import quote
from rowlake.write.key_index import index_keys

if TYPE_CHECKING:
    from rowlake.engine.spark import Engine
    from rowlake.maintain.autopilot.survey import Survey
    from rowlake.model.handle import TableHandle
    from rowlake.model.health import Verdict
    from rowlake.model.predicate import Predicate

VERB = "optimize"
PLANNED, DONE, SKIPPED, GAVE_WAY = "planned", "done", "skipped", "gave way"
# What steps get through in a second, until some have been measured in this process.
BYTES_PER_SECOND = 50_000_000
# A new measure counts as much as all before it.
_SPEEDS: dict[str, float] = {}


@dataclass(frozen=True)
class OptimizeStep:
    """One step: `state` is `planned` (dry run), `done`, `skipped` or `gave way` (to a writer).

    `saves_in_bytes` and `costs_in_bytes` are the estimates that it was chosen by.
    """

    verb: str
    state: str
    why: str
    sql: str
    command: str
    saves_in_bytes: int = 0
    costs_in_bytes: int = 0
    outcome: str = ""
    seconds: float = 0.0
    report: Report | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain values."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        found["report"] = None if self.report is None else self.report.to_dict()
        return found


@dataclass(frozen=True)
class OptimizeReport(Report):
    """What was done, or would be (`dry_run`), and what was left out."""

    always_shown: ClassVar[tuple[str, ...]] = ("table", "verdict_before")

    table: str
    steps: tuple[OptimizeStep, ...] = ()
    verdict_before: str = "ok"
    verdict_after: str | None = None
    snapshot_id: int | None = None
    dry_run: bool = False
    seconds: float = 0.0

    @property
    def done(self) -> tuple[OptimizeStep, ...]:
        """The steps that ran."""
        return tuple(each for each in self.steps if each.state == DONE)

    @property
    def planned(self) -> tuple[OptimizeStep, ...]:
        """The steps that a run would take."""
        return tuple(each for each in self.steps if each.state == PLANNED)

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain values."""
        return {**super().to_dict(), "steps": [each.to_dict() for each in self.steps]}

    def summary(self) -> str:
        """Return one line: what was done, or that nothing was to do."""
        ran = [each for each in self.steps if each.state != SKIPPED]
        said = "; ".join(
            f"{each.verb} {each.state}{f' ({each.outcome})' if each.outcome else ''}"
            for each in ran
        )
        return f"{self.table}: {said or 'nothing to do'}"

    def rows(self) -> list[tuple[str, str]]:
        """Return (name, value) of every line."""
        after = "" if self.verdict_after is None else f" → {self.verdict_after}"
        lines = [(self.table, f"{self.verdict_before}{after}, {self.seconds:.1f} s")]
        for each in self.steps:
            lines.append((each.state, f"{each.verb}: {each.why}"))
            if each.outcome:
                lines.append(("", each.outcome))
            if each.state == PLANNED:
                lines.append(("", each.command))
        return lines


@dataclass
class _Budget:
    """How far to go; None is without a limit."""

    max_bytes: int | None
    max_seconds: float | None
    started: float = field(default_factory=time.perf_counter)
    spent_bytes: int = 0

    @property
    def bytes_left(self) -> int | None:
        return None if self.max_bytes is None else self.max_bytes - self.spent_bytes

    @property
    def seconds_left(self) -> float | None:
        spent = time.perf_counter() - self.started
        return None if self.max_seconds is None else self.max_seconds - spent

    def foresee(self, step: Step) -> None:
        """Spend what a step would, so that a dry run skips what a real one skips."""
        room = self.bytes_left
        self.spent_bytes += step.rewrites if room is None else min(step.rewrites, room)

    def refusal(self, step: Step) -> str | None:
        """Return why there is no room for a step; a compaction takes what room there is."""
        left, seconds = self.bytes_left, self.seconds_left
        whole = step.verb != "rewrite_data_files" or "rewrite-all" in step.options
        if left is not None and (left <= 0 or (whole and step.rewrites > left)):
            return f"over the budget: {max(left, 0):,} of {self.max_bytes:,} bytes are left"
        if seconds is None:
            return None
        if seconds <= 0 or (whole and estimated_seconds(step) > seconds):
            return f"over the budget: {max(seconds, 0.0):.0f} of {self.max_seconds:g} s are left"
        return None


def optimize(
    handle: TableHandle,
    engine: Engine,
    *,
    dry_run: bool = False,
    max_bytes: int | None = None,
    max_seconds: float | None = None,
    where: Predicate | None = None,
    branch: str = "main",
) -> tuple[TableHandle, OptimizeReport]:
    """Run the maintenance that pays, or (`dry_run`) tell what would run.

    `max_bytes` bounds what is rewritten, `max_seconds` when the last step starts (compaction stops
    by itself); `where` keeps to files that may hold matching rows, and leaves metadata alone.
    """
    check_outside_transaction(handle, VERB)
    _check(handle, max_bytes, max_seconds)
    budget = _Budget(max_bytes, max_seconds)
    seen = survey(handle, branch=branch, where=where)
    chosen, left = propose(seen)
    if where is not None or branch != "main":
        chosen, left = _files_only(chosen, left)
    run = _Run(handle, engine, budget, Limits(where=where, branch=branch))
    steps = [run.step(step, dry_run=dry_run) for step in chosen]
    steps += [_left_out(each, seen.name) for each in left]
    steps += run.indexing(dry_run=dry_run)
    before, after = health_of(seen).verdict, None
    if any(each.state == DONE for each in steps):
        run.refresh()
        after = _verdict(survey(run.handle, branch=branch, where=where))
    return run.handle, OptimizeReport(
        table=seen.name,
        steps=tuple(steps),
        verdict_before=before.value,
        verdict_after=None if after is None else after.value,
        snapshot_id=run.handle.current_snapshot_id,
        dry_run=dry_run,
        seconds=time.perf_counter() - budget.started,
    )


def _verdict(seen: Survey) -> Verdict:
    return health_of(seen).verdict


def _check(handle: TableHandle, max_bytes: int | None, max_seconds: float | None) -> None:
    for name, value in (("max_bytes", max_bytes), ("max_seconds", max_seconds)):
        if value is not None and (isinstance(value, bool) or value <= 0):
            raise InvalidStatementError(
                f"{name} of optimize on {handle.name} must be above 0, not {value!r}."
            )


def _files_only(chosen: list[Step], left: list[NoStep]) -> tuple[list[Step], list[NoStep]]:
    """Return the plan without what is of the whole table."""
    whole = {"rewrite_manifests", "expire_snapshots"}
    kept = [step for step in chosen if step.verb not in whole]
    dropped = [NoStep(step.verb, "it is of the whole table") for step in chosen if step not in kept]
    return kept, [*left, *dropped]


def _left_out(each: NoStep, table: str) -> OptimizeStep:
    how = advice(each.verb, table)
    return OptimizeStep(each.verb, SKIPPED, each.why, how.sql, how.command)


class _Run:
    """The steps, one after the other, each on the table that the one before left."""

    def __init__(
        self, handle: TableHandle, engine: Engine, budget: _Budget, limits: Limits
    ) -> None:
        self.handle, self.engine, self.budget, self.limits = handle, engine, budget, limits

    def refresh(self) -> None:
        """Look at what others left."""
        self.handle = self.handle.format.refresh(self.handle)

    def step(self, step: Step, *, dry_run: bool) -> OptimizeStep:
        """Run one step, if there is room for it."""
        refusal = self.budget.refusal(step)
        if refusal is not None and step.instead is not None:
            return self.step(step.instead, dry_run=dry_run)
        if refusal is not None:
            return self._told(step, SKIPPED, f"{step.why}; {refusal}")
        why = f"{step.why}; {balance(step)}"
        if dry_run:
            self.budget.foresee(step)
            return self._told(step, PLANNED, why)
        started = time.perf_counter()
        try:
            outcome = self._outcome(step)
        except CommitConflictError as error:
            self.refresh()
            return self._told(step, GAVE_WAY, f"{why}; {error.cause}")
        except UnsupportedFeatureError as error:
            return self._told(step, SKIPPED, str(error))
        seconds = time.perf_counter() - started
        self.handle = outcome.handle
        self.budget.spent_bytes += outcome.bytes_rewritten
        measure(step, seconds)
        return self._told(step, DONE, why, outcome, seconds)

    def indexing(self, *, dry_run: bool) -> list[OptimizeStep]:
        """Fill in the key index of files that other engines wrote, where the table has one."""
        if self.limits.where is not None or self.limits.branch != "main":
            return []
        view = self.handle.view()
        keys = index_keys(view)
        if keys is None:
            return []
        missing, _, _ = missing_indexes(view, self.engine, keys)
        if not missing:
            return []
        columns = ", ".join(map(quote, keys.names))
        told = OptimizeStep(
            "create_index",
            PLANNED,
            f"{count_text(len(missing), 'data file')} without a key index",
            f"CREATE INDEX ON {view.name} ({columns})",
            f"rowlake index {shlex.quote(view.name)} {' '.join(map(shlex.quote, keys.names))}",
        )
        if dry_run:
            return [told]
        self.handle, report = fill_index(self.handle, self.engine)
        outcome = f"{count_text(report.files_indexed, 'data file')} indexed"
        return [replace(told, state=DONE, outcome=outcome, seconds=report.seconds, report=report)]

    def _outcome(self, step: Step) -> Outcome:
        limits = self.limits.within(self.budget.bytes_left, self.budget.seconds_left)
        self.refresh()
        return run_step(self.handle, self.engine, step, limits)

    def _told(
        self,
        step: Step,
        state: str,
        why: str,
        outcome: Outcome | None = None,
        seconds: float = 0.0,
    ) -> OptimizeStep:
        how = step.advice(self.handle.name)
        return OptimizeStep(
            verb=step.verb,
            state=state,
            why=why,
            sql=how.sql,
            command=how.command,
            saves_in_bytes=step.saves,
            costs_in_bytes=step.costs,
            outcome="" if outcome is None else outcome.text,
            seconds=seconds,
            report=None if outcome is None else outcome.report,
        )


def estimated_seconds(step: Step) -> float:
    """Return how long a step takes, by what such steps took in this process."""
    return step.costs / _SPEEDS.get(step.verb, BYTES_PER_SECOND)


def measure(step: Step, seconds: float) -> None:
    """Remember how quick a step was; those of a moment say nothing of large ones."""
    if seconds >= 1 and step.costs:
        speed = step.costs / seconds
        _SPEEDS[step.verb] = (_SPEEDS.get(step.verb, speed) + speed) / 2
