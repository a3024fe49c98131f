"""What an exception of a Spark job means.

A `RowlakeError` raised in a task comes home inside the text of the exception that Spark carries;
the driver finds it there by its seal (`rowlake.engine.sealed_errors`) and raises the same error
again, without Java's stack. Exceptions of Spark or of the user's query pass through as they are.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any

from rowlake.engine.sealed_errors import DRIVER_SEAL, as_marked_text, from_marks, from_signatures
from rowlake.errors import (
    EngineError,
    InternalError,
    InvalidStatementError,
    RowlakeError,
    SchemaMismatchError,
    missing_file,
)

if TYPE_CHECKING:
    from rowlake.engine.sealed_errors import Seal

_NO_ROWLAKE = re.compile(r"No module named '?(rowlake[\w.]*)|Can't get attribute .*rowlake")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]{1,80})'")
_OTHER_VERSION = re.compile(r"the executor has rowlake [\w.+-]{1,40}, the driver [\w.+-]{1,40}\.")
_OTHER_PYTHON = "PYTHON_VERSION_MISMATCH"
_WORKER_LOST = ("Python worker exited unexpectedly", "Python worker failed to connect back")
_LAST_LINES = 12
_OWN_MODULES = "/rowlake/"
_WORKER = "rowlake/engine/worker.py"
_NO_FILE = re.compile(
    r"\[FAILED_READ_FILE\.FILE_NOT_EXIST\] Encountered error while reading file (\S+?)\.? File does"
)
# What an expression raises for a row that breaks a rule of its table.
REFUSED_ROW = "Cannot write a row: "
_REFUSED_ROW = re.compile(re.escape(REFUSED_ROW) + r"[^\n]*?(?=\.? SQLSTATE: |\n|$)")
# Spark's own account of an error: [CLASS.OF_ERROR] text.
_SPARKS = re.compile(r"(\[[A-Z][A-Z_.]+\] [^\n]*?)(?: SQLSTATE: (\w{5}))?(?:\n|$)")
# Classes of SQL states that blame the statement: cardinality, data, syntax and names, raised by it.
_OF_STATEMENTS = ("21", "22", "42", "P0")

SHIPPING = (
    "Install the same rowlake on the executors (in their image), or send it along: "
    "--py-files rowlake.zip, or spark.addArtifacts('rowlake.zip', pyfile=True) on Spark Connect."
)


class TaskFailure(Exception):
    """What a task raises in place of a RowlakeError: the error's text and the error, sealed."""

    def __init__(self, error: RowlakeError, seal: Seal) -> None:
        super().__init__(as_marked_text(error, seal))


def translated(cause: Exception, label: str) -> Exception:
    """Return the error to raise for an exception of a Spark job.

    Rowlake's own errors come back as they were raised; a missing or different rowlake on the
    executors and a lost Python worker become EngineError; a fault of the kernel InternalError;
    everything else (the user's query, Spark itself) is returned unchanged.
    """
    text = str(cause)
    own = from_marks(text, DRIVER_SEAL) or from_signatures(text, DRIVER_SEAL)
    return own or _of_executors(text, label) or _of_spark(cause, text, label)


def _of_executors(text: str, label: str) -> EngineError | None:
    """Return what the executors lack, None where the text does not say so."""
    if _NO_ROWLAKE.search(text):
        return EngineError(f"Cannot run {label}: the executors have no rowlake. {SHIPPING}")
    if _OTHER_PYTHON in text:
        worker = os.environ.get("PYSPARK_PYTHON") or shutil.which("python3") or "python3"
        return EngineError(
            f"Cannot run {label}: Spark's workers run {worker}, the driver {sys.executable}, and "
            f"their versions differ. Set PYSPARK_PYTHON={sys.executable} before Spark starts, or "
            f"spark.pyspark.python to a Python of the driver's version."
        )
    version = _OTHER_VERSION.search(text)
    if version is not None:
        return EngineError(f"Cannot run {label}: {version[0]} {SHIPPING}")
    module = _NO_MODULE.search(text)
    if module is not None and _OWN_MODULES in text:
        return EngineError(
            f"Cannot run {label}: the Python of the executors has no module {module[1]}, which "
            f"rowlake needs. Install rowlake there with its dependencies (pip install rowlake), or "
            f"name a Python that has them in spark.pyspark.python."
        )
    if any(sign in text for sign in _WORKER_LOST):
        return EngineError(
            f"Spark lost a Python worker while {label}, often for want of memory. Give executors "
            f"more (spark.executor.memoryOverhead, spark.executor.pyspark.memory) and run again."
        )
    return None


def _of_spark(cause: Exception, text: str, label: str) -> Exception:
    missing = _NO_FILE.search(text)
    if missing is not None:
        return missing_file(missing.group(1))
    refused = _REFUSED_ROW.search(text) if "USER_RAISED_EXCEPTION" in text else None
    if refused is not None:
        return SchemaMismatchError(f"{refused[0]}. Nothing was written.")
    found = _SPARKS.search(text)
    if found is not None and type(cause).__module__.startswith("py4j"):
        if (found.group(2) or "").startswith(_OF_STATEMENTS):
            return InvalidStatementError(found.group(1))
        return EngineError(f"Spark failed while {label}: {found.group(1)}")
    if _WORKER in text:
        return InternalError(f"A task failed while {label}: {_python_part(text)}")
    return cause


def _python_part(text: str) -> str:
    """Return the end of the Python traceback inside the text of a Spark exception."""
    start = text.find("Traceback (most recent call last)")
    end = text.find("\n\tat ", start)
    lines = text[start : end if end > 0 else None].strip().splitlines()
    return "\n".join(lines[-_LAST_LINES:])


def is_spark_error(error: BaseException) -> bool:
    """Return whether this is one of the exceptions that PySpark, py4j or gRPC raise."""
    module: Any = type(error).__module__
    return str(module).split(".")[0] in {"pyspark", "py4j", "grpc"}
