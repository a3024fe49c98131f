"""Count where the work of one operation runs.

`tallied` opens a count, `note` adds to every count that is open in the caller's context. So counts
nest (an `optimize` counts its compactions, each of which counts itself), and operations in
different threads never see each other's work.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from rowlake.model.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Arguments = ParamSpec("Arguments")
Report = TypeVar("Report")


class Tally:
    """The work of one operation so far; threads may add to it at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._work = Work()

    def add(self, work: Work) -> None:
        """Count work that has run."""
        with self._lock:
            self._work += work

    @property
    def work(self) -> Work:
        """What has been counted."""
        return self._work


_open: ContextVar[tuple[Tally, ...]] = ContextVar("rowlake_tallies", default=())


@contextmanager
def tallied() -> Iterator[Tally]:
    """Count the work that runs inside the block."""
    tally = Tally()
    token = _open.set((*_open.get(), tally))
    try:
        yield tally
    finally:
        _open.reset(token)


@contextmanager
def untallied() -> Iterator[None]:
    """Keep the work that runs inside the block out of the counts that are open."""
    token = _open.set(())
    try:
        yield
    finally:
        _open.reset(token)


def is_tallied() -> bool:
    """Return whether a count is open."""
    return bool(_open.get())


def note(work: Work) -> None:
    """Add work to all counts that are open."""
    for tally in _open.get():
        tally.add(work)


def says_where_it_ran(verb: Callable[Arguments, Report]) -> Callable[Arguments, Report]:
    """Have a verb fill `ran_on`, `spark_jobs` and `spark_tasks` of the report it returns."""

    @wraps(verb)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Report:
        with tallied() as tally:
            report = verb(*args, **kwargs)
        return with_place(report, tally)

    return run


def with_place(report: Report, tally: Tally) -> Report:
    """Return a report that says where the counted work ran."""
    work, anything = tally.work, cast("Any", report)
    filled: Report = replace(
        anything, ran_on=work.ran_on, spark_jobs=work.spark_jobs, spark_tasks=work.spark_tasks
    )
    return filled
