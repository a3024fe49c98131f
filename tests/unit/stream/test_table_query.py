"""Queries of streams into tables: errors and progress as users see them."""

from __future__ import annotations

import logging

import pytest

from rowlake.engine.quiet import shorten_batch_failures
from rowlake.errors import InvalidStatementError
from rowlake.stream.sink import BatchResults, Sink, StreamRun
from rowlake.stream.table_query import as_table_query


class SparkQuery:
    """What of Spark's query is used, after a batch failed."""

    def __init__(self, results: BatchResults | None) -> None:
        self.results = results

    def awaitTermination(self, timeout=None):
        raise RuntimeError("[STREAM_FAILED] a long account")

    def processAllAvailable(self):
        raise RuntimeError("[STREAM_FAILED] a long account")

    def exception(self):
        return RuntimeError("[STREAM_FAILED] a long account")

    @property
    def lastProgress(self):
        return {"batchId": 3, "observedMetrics": {}}

    @property
    def recentProgress(self):
        return [self.lastProgress]


def failing_sink(error: Exception, results: BatchResults | None) -> Sink:
    def write(table, frame, options):
        raise error

    return Sink(StreamRun("app", "run", -1), lambda frame: None, write, results=results)


def test_a_query_tells_the_error_of_the_batch_that_ended_it():
    error, results = InvalidStatementError("no such column"), BatchResults()
    with pytest.raises(InvalidStatementError):
        failing_sink(error, results)(None, 0)
    query = as_table_query(SparkQuery(results), lambda number: None)
    for wait in (query.awaitTermination, query.processAllAvailable):
        with pytest.raises(InvalidStatementError) as raised:
            wait()
        assert raised.value is error
    assert query.exception() is error


@pytest.mark.parametrize("results", [None, BatchResults()])
def test_other_errors_stay_what_they_are(results):
    with pytest.raises(KeyError):
        failing_sink(KeyError("own"), results)(None, 0)
    query = as_table_query(SparkQuery(results), lambda number: None)
    with pytest.raises(RuntimeError, match="STREAM_FAILED"):
        query.awaitTermination()
    assert isinstance(query.exception(), RuntimeError)


def test_the_progress_has_the_metrics_of_the_batch():
    query = as_table_query(SparkQuery(None), lambda number: {"batch": number})
    assert query.lastProgress["observedMetrics"] == {"rowlake": {"batch": 3}}
    assert query.recentProgress == [query.lastProgress]


@pytest.mark.parametrize(
    ("error", "is_short"), [(InvalidStatementError("no such column"), True), (KeyError("x"), False)]
)
def test_a_failed_batch_is_logged_in_one_line(caplog, error, is_short):
    shorten_batch_failures()
    logger = logging.getLogger("py4j.clientserver")
    with caplog.at_level(logging.ERROR, logger="py4j.clientserver"):
        try:
            raise error
        except Exception:
            logger.exception("There was an exception while executing the Python Proxy")
    assert ("Traceback" not in caplog.text) == is_short
    assert ("A batch of a stream failed: no such column" in caplog.text) == is_short
