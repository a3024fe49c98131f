"""Run a Spark action: named, counted, reported as progress, cancelled on Ctrl-C, its errors ours.

Classic sessions name its jobs by job group (a thread's local property, put back afterwards); Spark
Connect names them by tag.
"""

from __future__ import annotations

import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar

from rowlake.engine.failures import is_spark_error, translated
from rowlake.engine.interrupts import cancelled_on_interrupt
from rowlake.engine.progress import ProgressOption, Reporter, reporting, watching
from rowlake.engine.tally import is_tallied, note
from rowlake.model.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

Result = TypeVar("Result")

GROUP_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")

_LOOK_SECONDS = 0.05
_MOST_SECONDS = 5.0
# How long to wait for Spark's listeners to hear that a job has ended, and how often to ask.
_LISTENERS_SECONDS = 0.5
_LISTENERS_PAUSE_SECONDS = 0.002
# Spark Connect does not tell which tasks run on.
_UNSEEN_TASKS_SECONDS = 1.0


def is_remote(spark: SparkSession) -> bool:
    """Return whether this is a Spark Connect session."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def run_job(
    spark: SparkSession, action: Callable[[], Result], label: str, progress: ProgressOption
) -> Result:
    """Return what `action` returns; it starts Spark jobs in this thread.

    On Ctrl-C the jobs are cancelled, then KeyboardInterrupt goes on. RowlakeErrors of tasks are
    raised here as they were raised there. Jobs and tasks are added to the open tallies.
    """
    watched = _remote_job if is_remote(spark) else _classic_job
    with (
        reporting(label, progress) as reporter,
        watched(spark, label, reporter) as job,
        cancelled_on_interrupt(job.cancel) as interrupted,
    ):
        try:
            found = action()
            if is_tallied():
                note(job.work())
            return found
        except KeyboardInterrupt:
            _await(job)
            raise
        except Exception as cause:
            _await(job)
            # A cancelled job fails; that must not hide why it was cancelled.
            if interrupted.is_set():
                raise KeyboardInterrupt from None
            if not is_spark_error(cause):
                raise
            error = translated(cause, label)
            if error is cause:
                raise
            # The chain would print Java's stack; our error says all there is to say.
            raise error from None


@dataclass(frozen=True)
class _Job:
    """What can be done about a job: `active_tasks` is None where nobody tells."""

    cancel: Callable[[], None]
    work: Callable[[], Work]
    active_tasks: Callable[[], int] | None = None


def _await(job: _Job) -> None:
    """Let the tasks of a job end that failed or was cancelled: Spark does not wait for them.

    A clean-up after the job would miss what they still write.
    """
    if job.active_tasks is None:
        sleep(_UNSEEN_TASKS_SECONDS)
        return
    until = monotonic() + _MOST_SECONDS
    with suppress(Exception):  # of a session that is gone, which the caller is about to hear
        while job.active_tasks() and monotonic() < until:
            sleep(_LOOK_SECONDS)


@contextmanager
def _classic_job(spark: Any, label: str, reporter: Reporter) -> Iterator[_Job]:
    context = spark.sparkContext
    group = f"rowlake-{uuid.uuid4()}"
    before = {key: context.getLocalProperty(key) for key in GROUP_PROPERTIES}
    context.setJobGroup(group, label, interruptOnCancel=True)
    tracker = context.statusTracker()
    try:
        with watching(lambda: _count_tasks(tracker, group), reporter):
            yield _Job(
                partial(_cancel, context, group),
                partial(_finished_work, tracker, group),
                lambda: _active_tasks(tracker, group),
            )
    finally:
        # None takes a property away.
        for key, value in before.items():
            context.setLocalProperty(key, value)


def _cancel(context: Any, group: str) -> None:
    """Cancel also the jobs that Spark is still planning; PySpark has no name for that."""
    context._jsc.sc().cancelJobGroupAndFutureJobs(group)


def _count_tasks(tracker: Any, group: str) -> tuple[int, int]:
    stages = list(_stages(tracker, group))
    return sum(one.numCompletedTasks for one in stages), sum(one.numTasks for one in stages)


def _active_tasks(tracker: Any, group: str) -> int:
    return sum(stage.numActiveTasks for stage in _stages(tracker, group))


def _stages(tracker: Any, group: str) -> Iterator[Any]:
    for job_id in tracker.getJobIdsForGroup(group):
        job = tracker.getJobInfo(job_id)
        for stage_id in job.stageIds if job else ():
            stage = tracker.getStageInfo(stage_id)
            if stage:
                yield stage


def _finished_work(tracker: Any, group: str) -> Work:
    """Return the jobs of an action that has returned, and their tasks.

    Spark's listeners lag behind the action by some milliseconds. Later jobs of adaptive execution
    name the stages of earlier ones again, and skip them: each stage counts once, skipped ones not.
    """
    until = monotonic() + _LISTENERS_SECONDS
    while True:
        jobs = [tracker.getJobInfo(job_id) for job_id in tracker.getJobIdsForGroup(group)]
        if all(job and job.status != "RUNNING" for job in jobs) or monotonic() > until:
            break
        sleep(_LISTENERS_PAUSE_SECONDS)
    stages = {stage.stageId: stage for stage in _stages(tracker, group)}
    tasks = sum(stage.numCompletedTasks for stage in stages.values())
    return Work(spark_jobs=len(jobs), spark_tasks=tasks)


@contextmanager
def _remote_job(
    spark: Any,
    label: str,  # noqa: ARG001 - tags cannot hold free text
    reporter: Reporter,
) -> Iterator[_Job]:
    tag = f"rowlake-{uuid.uuid4()}"
    seen: dict[int, int] = {}

    def heard(stages: Any, **_: Any) -> None:
        with suppress(Exception):
            seen.update({stage.stage_id: stage.num_tasks for stage in stages or ()})
            done = sum(stage.num_completed_tasks for stage in stages or ())
            reporter.update(done, sum(stage.num_tasks for stage in stages or ()))

    def work() -> Work:
        # A server tells no jobs, and of a short action not even its tasks: there are that many.
        return Work(spark_jobs=1, spark_tasks=max(1, sum(seen.values())))

    spark.addTag(tag)
    spark.registerProgressHandler(heard)
    try:
        yield _Job(lambda: spark.interruptTag(tag), work)
    finally:
        spark.removeProgressHandler(heard)
        spark.removeTag(tag)
