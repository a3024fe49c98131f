"""Python daemons of a Spark session that is about to stop: ended first, they end in silence.

Spark closes the sockets of idle workers before it ends their daemons, and a worker that sees that
prints a traceback. `rowlake.engine.daemon` keeps those quiet that run tasks; some of Spark's own
(which look for data sources) always run by Spark's. They are found among the children of the JVM,
where the system tells them (Linux).
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

_PATIENCE_SECONDS = 1.0
_NAMES = (b"pyspark.daemon", b"rowlake.engine.daemon")


def java_pid(spark: Any) -> int | None:
    """Return the process of a session's JVM, where this process started it."""
    gateway = getattr(getattr(spark, "sparkContext", None), "_gateway", None)
    process = getattr(gateway, "proc", None)
    return None if process is None else int(process.pid)


def end_daemons(parent: int | None) -> None:
    """End the Python daemons of a JVM with their workers; wait a little until they are gone."""
    found = [] if parent is None else _daemons(parent)
    for pid in found:
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    latest = time.monotonic() + _PATIENCE_SECONDS
    while any(_command(pid) for pid in found) and time.monotonic() < latest:
        time.sleep(0.005)


def _daemons(parent: int) -> list[int]:
    children: list[int] = []
    for listed in Path(f"/proc/{parent}/task").glob("*/children"):
        with suppress(OSError):
            children += [int(pid) for pid in listed.read_text().split()]
    return [pid for pid in children if any(name in _command(pid) for name in _NAMES)]


def _command(pid: int) -> bytes:
    """Return what a process runs; nothing where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
