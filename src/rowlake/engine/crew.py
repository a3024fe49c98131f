"""Processes beside the driver that run kernels: what threads cannot do at once, they can.

Comes in: kernels with tasks that take some CPU. Goes out: what they yield. Python's threads share
one interpreter, and a kernel spends about half of its time in it; two threads are hardly quicker
than one. The processes are started in the background once enough work has come by to pay for it
(threads do it until then), wait for the next task, and end with the driver, or when nothing came
for a while. They are started afresh (`rowlake.engine.crew_member`), never forked from a driver that
may have threads.

Invariant: a task runs once. A process that is lost while it runs one is an error, which callers
clean up after as they do after a lost Spark task.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.engine.crew_member import FAILED, READY, read_frame, write_frame
from rowlake.engine.sealed_errors import from_plain
from rowlake.engine.worker import pack
from rowlake.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Kernel = Callable[[Any], Iterable[pa.RecordBatch]]

# Starting a process costs about as much CPU as reading so many bytes.
PAYS_AT_BYTES = 128 * 1024 * 1024
# Less is done by threads before a task has been sent and answered.
LEAST_BYTES = 4 * 1024 * 1024


def cpu_count() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Crew:
    """Up to `size` processes; tasks of several threads are dealt out to those that are free."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._free: list[Member] = []
        self._is_started = False
        self._seen_bytes = 0
        self._lock = threading.Condition()
        self._starting: threading.Thread | None = None
        self.process_id = os.getpid()

    def is_ready_for(self, kernel: Kernel, tasks: int, size_in_bytes: int) -> bool:
        """Tell whether tasks can be called now; work that comes by has processes started."""
        if tasks < 2 or size_in_bytes < LEAST_BYTES or self.size < 2:
            return False
        with self._lock:
            if self.process_id != os.getpid():
                return False  # forked: the processes are the parent's
            self._seen_bytes += size_in_bytes
            if not self._is_started and self._seen_bytes >= PAYS_AT_BYTES:
                self._start(kernel)
            return self._is_started and (self._starting is None or not self._starting.is_alive())

    def _start(self, kernel: Kernel) -> None:
        self._is_started = True
        self._starting = threading.Thread(
            target=self._make, args=(_module(kernel),), name="rowlake-crew", daemon=True
        )
        self._starting.start()

    def _make(self, module: str) -> None:
        # Where no process can be started, threads go on doing the work.
        try:
            members = [Member(module) for _ in range(self.size)]
            for member in members:
                member.wait_until_ready()
        except (OSError, EngineError):
            self.size = 0
            return
        with self._lock:
            self._free += members
            self._lock.notify_all()

    def start(self, kernel: Kernel) -> None:
        """Start the processes, if they are not, and wait until they are there."""
        with self._lock:
            if not self._is_started:
                self._start(kernel)
        assert self._starting is not None
        self._starting.join()

    def calls(self, kernel: Kernel) -> Calls:
        """Return what runs a kernel in processes that are free."""
        return Calls(self, kernel)

    def take(self) -> Member:
        """Return a process that is free, once there is one."""
        with self._lock:
            while not self._free:
                self._lock.wait()
            return self._free.pop()

    def give_back(self, member: Member) -> None:
        """Let others have a process; in the place of one that was lost comes another."""
        with self._lock:
            self._free.append(member)
            self._lock.notify()

    def end(self) -> None:
        """End all processes that are free, and start no others."""
        with self._lock:
            if self.process_id == os.getpid():
                for member in self._free:
                    member.end()
            self._free, self.size = [], 0


class Calls:
    """Calls of one kernel, from several threads."""

    def __init__(self, crew: Crew, kernel: Kernel) -> None:
        self._crew, self._kernel = crew, kernel
        self._running: set[Member] = set()

    def __call__(self, task: Any) -> pa.Table | None:
        """Return what the kernel yields for a task; None for nothing.

        Raises the kernel's RowlakeError, InternalError for what else it raises, EngineError where
        the process is lost.
        """
        packed = pack((self._kernel, task))
        member = self._crew.take()
        self._running.add(member)
        try:
            answer = member.call(packed)
        finally:
            self._running.discard(member)
            self._crew.give_back(member)
        kind, body = answer[:1], answer[1:]
        if kind == FAILED:
            raise from_plain(json.loads(body))
        return pa.ipc.open_stream(pa.py_buffer(body)).read_all() if body else None

    def interrupt(self) -> None:
        """End the processes that still run a task; their calls raise."""
        for member in list(self._running):
            member.end()


class Member:
    """One process, started anew where it has ended."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._process = _started(module)
        self._is_ready = False

    def wait_until_ready(self) -> None:
        """Wait until the process takes tasks; raises EngineError where it ends instead."""
        assert self._process.stdout is not None
        if not self._is_ready and read_frame(self._process.stdout) != READY:
            raise EngineError(f"Cannot start a process of rowlake with {sys.executable}.")
        self._is_ready = True

    def call(self, packed: bytes) -> bytes:
        """Send a task and return its answer."""
        if self._process.poll() is not None:  # nothing had come for a while, or it was lost
            self.end()
            self._process, self._is_ready = _started(self._module), False
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        self.wait_until_ready()
        answer = None
        with suppress(BrokenPipeError):
            write_frame(process.stdin, packed)
            answer = read_frame(process.stdout)
        if answer is None:
            raise EngineError(
                f"A process that ran tasks was lost (exit code {process.wait()}), often for want "
                "of memory. Run the statement again."
            )
        return answer

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()


def _module(kernel: Kernel) -> str:
    """Return the module of a function, also of one inside partials."""
    while isinstance(kernel, partial):
        kernel = kernel.func
    return str(kernel.__module__)


def _started(module: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "rowlake.engine.crew_member", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,  # Ctrl-C is the driver's to handle
    )


_crew: Crew | None = None
_making = threading.Lock()


def shared_crew() -> Crew:
    """Return the crew of this process, made at the first need."""
    global _crew
    with _making:
        if _crew is None or _crew.process_id != os.getpid():
            _crew = Crew(cpu_count())
            atexit.register(_crew.end)
        return _crew
