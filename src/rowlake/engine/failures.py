"""Errors that cross from a Spark task to the driver.

A `RowlakeError` raised in a task is packed into the text of the exception that Spark carries
home (class, arguments, fields); the driver finds it there and raises the same error again,
without Java's stack. Exceptions of Spark or of the user's query pass through as they are.
"""

from __future__ import annotations

import base64
import pickle
import re
from typing import Any

from rowlake import errors
from rowlake.errors import EngineError, InternalError, RowlakeError

_MARK = re.compile(r"\[rowlake-error ([A-Za-z0-9+/=]+)\]")
_NO_ROWLAKE = re.compile(r"No module named '?(rowlake[\w.]*)|Can't get attribute .*rowlake")
_TOLD = re.compile(
    r"^rowlake\.errors\.(\w+Error): (.*?)(?=\n\s*\n|\n\s+at |\nJVM stacktrace|\Z)",
    re.DOTALL | re.MULTILINE,
)
_WORKER_LOST = ("Python worker exited unexpectedly", "Python worker failed to connect back")
_LAST_LINES = 12
# Spark's own account of an error: [CLASS.OF_ERROR] text.
_SPARKS = re.compile(r"(\[[A-Z][A-Z_.]+\] [^\n]*?)(?: SQLSTATE: \w+)?(?:\n|$)")

SHIPPING = (
    "Install the same rowlake on the executors (in their image), or send it along: "
    "--py-files rowlake.zip, or spark.addArtifacts('rowlake.zip', pyfile=True) on Spark Connect."
)


class TaskFailure(Exception):
    """What a task raises in place of a RowlakeError: the error's text and the error itself."""

    def __init__(self, error: RowlakeError) -> None:
        packed = pickle.dumps((type(error), error.args, error.__dict__))
        mark = base64.b64encode(packed).decode()
        super().__init__(f"{error} [rowlake-error {mark}]")


def unpacked(text: str) -> RowlakeError | None:
    """Return the RowlakeError that is packed into this text, None where there is none."""
    found = _MARK.search(text)
    if found is None:
        return None
    kind, args, fields = pickle.loads(base64.b64decode(found.group(1)))
    error: RowlakeError = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


def told(text: str) -> RowlakeError | None:
    """Return the RowlakeError that a Python traceback in this text ends with: class and message.

    For errors of tasks that could not pack them; their fields are lost.
    """
    found = _TOLD.search(text)
    kind = getattr(errors, found.group(1), None) if found else None
    if found is None or kind is None:
        return None
    error: RowlakeError = kind.__new__(kind)
    error.args = (found.group(2).strip(),)
    return error


def translated(cause: Exception, label: str) -> Exception:
    """Return the error to raise for an exception of a Spark job.

    Rowlake's own errors come back as they were raised; a missing or different rowlake on the
    executors and a lost Python worker become EngineError; a fault of the kernel InternalError;
    everything else (the user's query, Spark itself) is returned unchanged.
    """
    text = str(cause)
    own = unpacked(text) or told(text)
    if own is not None:
        return own
    if _NO_ROWLAKE.search(text):
        return EngineError(f"Cannot run {label}: the executors have no rowlake. {SHIPPING}")
    if any(sign in text for sign in _WORKER_LOST):
        return EngineError(
            f"Spark lost a Python worker while {label}, often for want of memory. Give executors "
            f"more (spark.executor.memoryOverhead, spark.executor.pyspark.memory) and run again."
        )
    found = _SPARKS.search(text)
    if found is not None and type(cause).__module__.startswith("py4j"):
        return EngineError(f"Spark failed while {label}: {found.group(1)}")
    if "rowlake/engine/worker.py" in text:
        return InternalError(f"A task failed while {label}: {_python_part(text)}")
    return cause


def _python_part(text: str) -> str:
    """Return the end of the Python traceback inside the text of a Spark exception."""
    start = text.find("Traceback (most recent call last)")
    end = text.find("\n\tat ", start)
    lines = text[start : end if end > 0 else None].strip().splitlines()
    return "\n".join(lines[-_LAST_LINES:])


def is_spark_error(error: BaseException) -> bool:
    """Tell whether this is one of the exceptions that PySpark, py4j or gRPC raise."""
    module: Any = type(error).__module__
    return str(module).split(".")[0] in {"pyspark", "py4j", "grpc"}
