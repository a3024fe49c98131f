"""The Arrow batches in which Spark hands rows to Python, set for as long as a job of ours runs.

Spark 4.1 asks after every row how many bytes the batch has by now, column by column: that costs
as much CPU as all the rest of the way to Python. It does not ask where the limit is the largest
integer. Batches are bounded by rows instead, so few that long texts fit; where values may be of
any size (binary, variant) Spark goes on asking. A limit that the session has set is kept.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
UNLIMITED = 2**31 - 1
MOST_ROWS = 2_048
UNBOUNDED = frozenset({"binary", "variant", "geometry", "geography", "udt"})

_lock = threading.Lock()
# By session: how many jobs run with our settings, and what was set before the first of them.
_active: WeakKeyDictionary[Any, tuple[int, dict[str, str | None]]] = WeakKeyDictionary()


@contextmanager
def bounded_by_rows(spark: SparkSession, schema: Any) -> Iterator[None]:
    """Let rows of this Spark schema go to Python in batches of `MOST_ROWS`, whatever their bytes.

    Other jobs of the session that start in between get the same batches; results never differ.
    """
    taken = not _has_unbounded(schema.jsonValue()) and _enter(spark)
    try:
        yield
    finally:
        if taken:
            _leave(spark)


def _has_unbounded(described: Any) -> bool:
    """Tell from a schema's JSON form whether some value, at any depth, may be of any size."""
    if isinstance(described, str):
        return described in UNBOUNDED
    if isinstance(described, list):
        return any(map(_has_unbounded, described))
    return any(
        _has_unbounded(described[part])
        for part in ("type", "fields", "elementType", "keyType", "valueType")
        if part in described
    )


def _enter(spark: Any) -> bool:
    with _lock:
        count, before = _active.get(spark, (0, {}))
        if not count:
            before = {key: spark.conf.get(key, None) for key in (ROWS, BYTES)}
            if before[BYTES] is not None:
                return False
            if not _set(spark, _rows_per_batch(before[ROWS])):
                _restore(spark, before)
                return False
        _active[spark] = (count + 1, before)
    return True


def _rows_per_batch(asked: str | None) -> int:
    rows = int(asked) if asked else MOST_ROWS
    return min(rows, MOST_ROWS) if rows > 0 else MOST_ROWS


def _set(spark: Any, rows: int) -> bool:
    """Return whether the session takes the settings; some servers let nobody change any."""
    try:
        spark.conf.set(ROWS, str(rows))
        spark.conf.set(BYTES, str(UNLIMITED))
    except PySparkException:
        return False
    return True


def _leave(spark: Any) -> None:
    with _lock:
        count, before = _active.pop(spark)
        if count > 1:
            _active[spark] = (count - 1, before)
            return
        _restore(spark, before)


def _restore(spark: Any, before: dict[str, str | None]) -> None:
    # A session that is gone must not hide why its job failed.
    with suppress(Exception):
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)
