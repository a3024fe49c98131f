"""Queries of streams into tables, as users hold them: their progress and errors are rowlake's.

Comes in: Spark's `StreamingQuery`. Goes out: the same query, whose progress has the metrics of its
batches and which raises the error of the batch that ended it, not Spark's account of it. Where
batches run in another process (Spark Connect), errors are Spark's.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from rowlake.secrets import cause_without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    # Says what the batch of a number did to the table; None where that is not known.
    Metrics: TypeAlias = Callable[[int], Mapping[str, Any] | None]

METRICS = "rowlake"


def as_table_query(query: Any, metrics: Metrics) -> Any:
    """Return the query of a sink, `results` of which are set."""
    query.batch_metrics = metrics
    query.__class__ = type("TableQuery", (_TableQuery, type(query)), {})
    return query


class _TableQuery:
    """What differs from Spark's query, which comes after it in the order of classes."""

    results: Any
    batch_metrics: Metrics

    @property
    def lastProgress(self) -> Any:
        return self._told(super().lastProgress)  # type: ignore[misc]

    @property
    def recentProgress(self) -> Any:
        return [self._told(one) for one in super().recentProgress]  # type: ignore[misc]

    def _told(self, progress: Any) -> Any:
        known = None if progress is None else self.batch_metrics(int(progress["batchId"]))
        if known is not None:
            progress["observedMetrics"] = {**progress["observedMetrics"], METRICS: dict(known)}
        return progress

    def awaitTermination(self, timeout: float | None = None) -> Any:
        with self._plainly():
            return super().awaitTermination(timeout)  # type: ignore[misc]

    def processAllAvailable(self) -> None:
        with self._plainly():
            super().processAllAvailable()  # type: ignore[misc]

    def exception(self) -> Any:
        found = super().exception()  # type: ignore[misc]
        return found if found is None else self._failure or found

    @property
    def _failure(self) -> Exception | None:
        return None if self.results is None else self.results.failure

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if self._failure is None:
                raise
            raise self._failure from cause_without_secrets(error)
