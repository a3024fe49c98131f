"""The Python that Spark starts for a session made here.

Spark runs `python -m pyspark.daemon` for what plans a Python data source, whatever
`spark.python.daemon.module` says. Such a daemon imports PySpark from an archive, and its idle
workers print a traceback after a minute (`rowlake.engine.daemon` says why). The launcher is a
script that runs rowlake's daemon instead, and the same interpreter for everything else.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rowlake.engine.java import cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VARIABLE = "PYSPARK_PYTHON"
_SCRIPT = """#!/bin/sh
if [ "$1" = -m ] && [ "$2" = pyspark.daemon ]; then
  shift 2
  exec {python} -m rowlake.engine.daemon "$@"
fi
exec {python} "$@"
"""


@contextmanager
def launching_quietly() -> Iterator[None]:
    """Let Spark start its Python workers by the launcher, if they run this interpreter.

    A process that is started inside remembers the launcher; the variable is as before afterwards.
    """
    named = os.environ.get(VARIABLE)
    launcher = _launcher() if named is None or named == sys.executable else None
    os.environ[VARIABLE] = launcher or named or sys.executable
    try:
        yield
    finally:
        os.environ[VARIABLE] = named or sys.executable


def _launcher() -> str | None:
    """Return the script for this interpreter; None where it cannot be written or run."""
    if os.name != "posix":
        return None
    text = _SCRIPT.format(python=shlex.quote(sys.executable))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = cache_folder() / f"python-{digest}"
    try:
        if not path.exists() or path.read_text() != text:
            _write(path, text)
    except (OSError, UnicodeError):
        return None
    return str(path) if os.access(path, os.X_OK) else None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(text)
    fresh.chmod(0o700)
    fresh.replace(path)
