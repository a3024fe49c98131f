"""Spark's refusals without Spark's own words on stderr, where rowlake tells them itself."""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from rowlake.errors import RowlakeError

if TYPE_CHECKING:
    from collections.abc import Iterator

# PySpark logs every analysis error, with Java's stack, before it raises it.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
# Who logs what `foreachBatch` raises, before Spark ends the query with it.
_CALLBACK_LOGGERS = ("py4j.clientserver", "py4j.java_gateway")


_silenced = threading.Event()


def silence_refusals() -> None:
    """Keep PySpark from logging errors in this process; they are raised all the same."""
    _silenced.set()
    for logger in _loggers():
        logger.disabled = True


def _loggers() -> list[Any]:
    """Return PySpark's loggers; none before it is loaded, since nothing is logged by then."""
    if "pyspark" not in sys.modules:
        return []
    with suppress(ImportError):
        from pyspark.logger import PySparkLogger

        return [PySparkLogger.getLogger(name) for name in _LOGGERS]
    return []


class _Shorten(logging.Filter):
    """Says in one line what py4j tells of a batch that rowlake refused, Java's stack and all."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, RowlakeError):
            record.msg, record.args = "A batch of a stream failed: %s", (error,)
            record.exc_info = record.exc_text = None
        return True


_SHORTEN = _Shorten()


def shorten_batch_failures() -> None:
    """Have batches of streams that fail with an error of rowlake's logged in one line."""
    for name in _CALLBACK_LOGGERS:
        logging.getLogger(name).addFilter(_SHORTEN)


@contextmanager
def quiet_refusals() -> Iterator[None]:
    """Keep PySpark from logging the analysis errors that are raised inside."""
    loggers = _loggers()
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was or _silenced.is_set()
