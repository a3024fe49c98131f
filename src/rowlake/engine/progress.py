"""How far a piece of work is: a bar on a terminal or in a notebook, a user's function, or nothing.

`progress` is True (a bar, where there is a terminal or a notebook), False, or a function that takes
`Progress`. For Spark jobs a thread asks the status tracker by job group (classic sessions); on
Spark Connect the client's progress handler tells. Progress never makes work fail.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from rowlake.model import markup
from rowlake.model.ipython import has_notebook
from rowlake.model.printable import printable_line

POLL_SECONDS = 0.25
PATIENCE_SECONDS = 0.5


@dataclass(frozen=True)
class Progress:
    """The state of one phase of work; `total` is 0 while it is not known."""

    label: str
    done: int
    total: int


ProgressOption = bool | Callable[[Progress], None]


class Reporter:
    """Tells one phase's progress; this one tells nobody."""

    def update(self, done: int, total: int) -> None:
        """Say that `done` of `total` tasks are finished."""


class CallbackReporter(Reporter):
    """Calls a function of the user's, once per change."""

    def __init__(self, label: str, callback: Callable[[Progress], None]) -> None:
        self._label, self._callback = label, callback
        self._last: tuple[int, int] | None = None
        self._lock = threading.Lock()

    def update(self, done: int, total: int) -> None:
        """Call the function, unless nothing changed."""
        with self._lock:
            if (done, total) != self._last:
                self._last = (done, total)
                self._callback(Progress(self._label, done, total))


class BarReporter(Reporter):
    """Moves a bar on the terminal."""

    def __init__(self, bar: Any, task_id: Any) -> None:
        self._bar, self._task_id = bar, task_id

    def update(self, done: int, total: int) -> None:
        """Move the bar; without a total it only shows that work goes on."""
        self._bar.update(self._task_id, completed=done, total=total or None)


class NotebookReporter(Reporter):
    """Moves a bar below the cell that runs, in place; work that is soon done shows none."""

    def __init__(self, label: str) -> None:
        self._label, self._started = label, time.monotonic()
        self._shown: Any = None
        self._last: tuple[int, int] | None = None
        self._lock = threading.Lock()

    def update(self, done: int, total: int) -> None:
        """Show the bar, or move it."""
        with self._lock:
            if (done, total) == self._last or time.monotonic() - self._started < PATIENCE_SECONDS:
                return
            self._last = (done, total)
            self._display(markup.progress(self._label, done, total))

    def end(self) -> None:
        """Take the bar away."""
        with self._lock:
            if self._shown is not None:
                self._display("")

    def _display(self, text: str) -> None:
        from IPython.display import HTML, display  # it runs already, or there were no notebook

        if self._shown is None:
            self._shown = display(HTML(text), display_id=True)
        else:
            self._shown.update(HTML(text))


@contextmanager
def _notebook_bar(label: str) -> Iterator[Reporter]:
    bar = NotebookReporter(label)
    try:
        yield bar
    finally:
        with suppress(Exception):  # what goes wrong with the display must not touch the work
            bar.end()


@contextmanager
def reporting(label: str, progress: ProgressOption) -> Iterator[Reporter]:
    """Give a reporter for one phase; a bar is taken off the screen when the phase ends."""
    if callable(progress):
        yield CallbackReporter(label, progress)
    elif progress and has_notebook():
        with _notebook_bar(label) as bar:
            yield bar
    elif progress and sys.stderr.isatty():
        with _bar() as bar:
            yield BarReporter(bar, bar.add_task(printable_line(label), total=None))
    else:
        yield Reporter()


def _bar() -> Any:
    # Here, not above: Spark tasks load this room and never draw.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return RichProgress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def watching(count_tasks: Callable[[], tuple[int, int]], reporter: Reporter) -> Iterator[None]:
    """Ask `count_tasks` for (done, total) in a thread until the work inside is done."""
    if type(reporter) is Reporter:
        yield
        return
    stopped = threading.Event()

    def poll() -> None:
        while not stopped.wait(POLL_SECONDS):
            # Whatever goes wrong with the display must not touch the work.
            with suppress(Exception):
                reporter.update(*count_tasks())

    thread = threading.Thread(target=poll, name="rowlake-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(timeout=2)
