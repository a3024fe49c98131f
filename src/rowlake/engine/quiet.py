"""Spark's refusals without Spark's own words on stderr, where rowlake tells them itself."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# PySpark logs every analysis error, with Java's stack, before it raises it.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@contextmanager
def quiet_refusals() -> Iterator[None]:
    """Keep PySpark from logging the analysis errors that are raised inside."""
    loggers = []
    with suppress(ImportError):
        from pyspark.logger import PySparkLogger

        loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was
