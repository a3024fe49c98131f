"""What Spark's Python daemon loads before it forks workers, and where from. Imports no pyspark.

A worker that is forked from a daemon with these modules has them at once. Spark ends workers that
were idle for a minute, so not only the first statement of a session gains.
"""

from __future__ import annotations

import gc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

import rowlake.engine.worker  # noqa: F401 - for the workers

_ARCHIVE = "pyspark/python/lib/pyspark.zip"


def use_installed_pyspark(path: list[str]) -> None:
    """Take the archive of PySpark off a module path that has the same PySpark installed.

    Spark puts `pyspark/python/lib/pyspark.zip` first on the path. An archive holds no compiled
    modules: to import from it takes 0.5 s longer.
    """
    for archive in [entry for entry in path if entry.endswith(f"/{_ARCHIVE}")]:
        installed = archive.removesuffix(f"/{_ARCHIVE}")
        if installed in path and Path(installed, "pyspark", "daemon.py").exists():
            path.remove(archive)


def preload() -> None:
    """Load what nearly all tasks need; nothing here starts a thread, which a fork would lose."""
    pa.array([None])  # pyarrow imports pandas with the first array that it makes
    gc.collect()
    # What is loaded by now is never garbage: workers share its memory.
    gc.freeze()
