"""Spark's Python daemon for sessions that rowlake makes: workers start fast and end quietly.

Modules that tasks need are loaded before workers are forked (`rowlake.engine.preload`).

Spark closes the socket of a worker when it stops, and when a task needs no more of its rows. The
worker takes that for a failure, cannot tell Spark so (a Unix domain socket is closed at once) and
prints a traceback. Here it goes without a word; what really failed is told by Spark.

Run as `python -m rowlake.engine.daemon pyspark.worker`, as Spark runs its own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rowlake.engine.preload import preload, use_installed_pyspark

if __name__ == "__main__":
    use_installed_pyspark(sys.path)
from pyspark import daemon

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import BufferedReader, BufferedWriter

    RunTask = Callable[[BufferedReader, BufferedWriter], None]


def quietly(run_task: RunTask) -> RunTask:
    """Return what runs the next task of a worker, and ends it where there will be none."""

    def run(tasks: BufferedReader, results: BufferedWriter) -> None:
        if not _has_more(tasks):
            # Any code but 0, which would have the daemon ask for the next task.
            sys.exit(1)
        try:
            run_task(tasks, results)
        except SystemExit:
            _flush(results)
            raise

    return run


def _has_more(tasks: BufferedReader) -> bool:
    """Wait for the next task; False where Spark has closed the socket."""
    try:
        return bool(tasks.peek(1))
    except ConnectionError:  # closed with something unread in it
        return False


def _flush(results: BufferedWriter) -> None:
    """Send what is left, or drop it where nobody is there to get it."""
    try:
        results.flush()
    except ConnectionError:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), results.fileno())


# Later versions of PySpark load the worker after the fork, out of reach: there it runs as it is.
if hasattr(daemon, "worker_main"):
    daemon.worker_main = quietly(daemon.worker_main)

if __name__ == "__main__":
    preload()
    daemon.manager()
