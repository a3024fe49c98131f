"""One Spark job, watched: named, counted for progress, cancelled on Ctrl-C, its errors ours.

Classic sessions name a job by job group (a thread's local property, put back afterwards); Spark
Connect names it by tag.
"""

from __future__ import annotations

import signal
import threading
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from rowlake.engine.failures import is_spark_error, translated
from rowlake.engine.progress import ProgressOption, Reporter, reporting, watching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from pyspark.sql import SparkSession

Result = TypeVar("Result")

GROUP_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


def is_remote(spark: SparkSession) -> bool:
    """Tell whether this is a Spark Connect session."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def run_job(
    spark: SparkSession, action: Callable[[], Result], label: str, progress: ProgressOption
) -> Result:
    """Return what `action` returns; it starts Spark jobs in this thread.

    On Ctrl-C the jobs are cancelled, then KeyboardInterrupt goes on. RowlakeErrors of tasks are
    raised here as they were raised there.
    """
    watched = _remote_job if is_remote(spark) else _classic_job
    with (
        reporting(label, progress) as reporter,
        watched(spark, label, reporter) as cancel,
        _cancelled_on_interrupt(cancel) as interrupted,
    ):
        try:
            return action()
        except Exception as cause:
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


@contextmanager
def _cancelled_on_interrupt(cancel: Callable[[], None]) -> Iterator[threading.Event]:
    """Cancel the job at once on Ctrl-C; the event tells that it happened.

    PySpark waits for the job's end before KeyboardInterrupt can leave its call, so the job is
    cancelled from the signal's handler, in a thread, since this one may be inside a call to Java.
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    previous = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: FrameType | None) -> None:
        interrupted.set()
        threading.Thread(target=_quietly, args=(cancel,), daemon=True).start()
        if callable(previous):
            previous(number, frame)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, previous)


def _quietly(cancel: Callable[[], None]) -> None:
    with suppress(Exception):
        cancel()


@contextmanager
def _classic_job(spark: Any, label: str, reporter: Reporter) -> Iterator[Callable[[], None]]:
    context = spark.sparkContext
    group = f"rowlake-{uuid.uuid4()}"
    before = {key: context.getLocalProperty(key) for key in GROUP_PROPERTIES}
    context.setJobGroup(group, label, interruptOnCancel=True)
    tracker = context.statusTracker()
    try:
        with watching(lambda: _count_tasks(tracker, group), reporter):
            yield lambda: context.cancelJobGroup(group)
    finally:
        # None takes a property away.
        for key, value in before.items():
            context.setLocalProperty(key, value)


def _count_tasks(tracker: Any, group: str) -> tuple[int, int]:
    done = total = 0
    for job_id in tracker.getJobIdsForGroup(group):
        job = tracker.getJobInfo(job_id)
        for stage_id in job.stageIds if job else ():
            stage = tracker.getStageInfo(stage_id)
            if stage:
                done += stage.numCompletedTasks
                total += stage.numTasks
    return done, total


@contextmanager
def _remote_job(
    spark: Any,
    label: str,  # noqa: ARG001 - tags cannot hold free text
    reporter: Reporter,
) -> Iterator[Callable[[], None]]:
    tag = f"rowlake-{uuid.uuid4()}"

    def heard(stages: Any, **_: Any) -> None:
        with suppress(Exception):
            done = sum(stage.num_completed_tasks for stage in stages or ())
            reporter.update(done, sum(stage.num_tasks for stage in stages or ()))

    spark.addTag(tag)
    spark.registerProgressHandler(heard)
    try:
        yield lambda: spark.interruptTag(tag)
    finally:
        spark.removeProgressHandler(heard)
        spark.removeTag(tag)
