"""Operations that the page starts, one at a time, and how far they are.

Comes in: what to run. Goes out: `Operation`s with progress and outcome, the newest first. Progress
is what the engine reports in this process; operations of other processes tell nobody how far they
are, only their commits are seen.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.engine.progress import Progress
    from rowlake.engine.spark import Engine
    from rowlake.model.report import Report

KEPT = 50
RUNNING, DONE, FAILED = "running", "done", "failed"
# Reports of a snapshot comparison that runs in between are not the operation's.
_OTHERS = "reading changes of "


@dataclass(frozen=True)
class Operation:
    """One operation; `total` is 0 while it is not known."""

    number: int
    verb: str
    table: str
    started_ms: int
    state: str = RUNNING
    phase: str = ""
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    lines: tuple[tuple[str, str], ...] = ()
    error: str = ""


@dataclass
class Operations:
    """What was started by this page."""

    engine: Engine
    plain: Callable[[BaseException], str]
    _all: deque[Operation] = field(default_factory=lambda: deque(maxlen=KEPT))
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None

    def start(self, verb: str, table: str, run: Callable[[], Report]) -> Operation | None:
        """Start an operation; None while another one runs."""
        with self._guard:
            if self.running is not None:
                return None
            number = self._all[0].number + 1 if self._all else 1
            started = Operation(number, verb, table, int(time.time() * 1000))
            self._all.appendleft(started)
            name = f"rowlake-ui-{verb}"
            self._thread = threading.Thread(target=self._work, args=(run,), name=name, daemon=True)
        self._thread.start()
        return started

    @property
    def running(self) -> Operation | None:
        """The operation that is not over."""
        newest = self._all[0] if self._all else None
        return newest if newest is not None and newest.state == RUNNING else None

    def all(self) -> list[Operation]:
        """Return what was started, newest first."""
        with self._guard:
            return [self._timed(each) for each in self._all]

    def wait(self, seconds: float | None = None) -> None:
        """Wait until nothing runs."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _work(self, run: Callable[[], Report]) -> None:
        before, self.engine.progress = self.engine.progress, self._progressed
        try:
            report = run()
            self._end(state=DONE, lines=tuple(report.rows()))
        except Exception as error:  # noqa: BLE001 - the page tells it
            self._end(state=FAILED, error=self.plain(error) or type(error).__name__)
        finally:
            self.engine.progress = before

    def _progressed(self, progress: Progress) -> None:
        if not progress.label.startswith(_OTHERS):
            self._change(phase=progress.label, done=progress.done, total=progress.total)

    def _end(self, **changes: object) -> None:
        with self._guard:
            newest = self._timed(self._all[0])
        self._change(seconds=newest.seconds, **changes)

    def _change(self, **changes: object) -> None:
        with self._guard:
            self._all[0] = replace(self._all[0], **changes)  # type: ignore[arg-type]

    def _timed(self, each: Operation) -> Operation:
        if each.state != RUNNING:
            return each
        return replace(each, seconds=max(time.time() - each.started_ms / 1000, 0.0))
