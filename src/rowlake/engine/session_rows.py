"""Temporary views and cached rows of the Spark session. Imports pyspark only where it is used."""

from __future__ import annotations

from typing import Any

from rowlake.engine.jobs import is_remote
from rowlake.engine.quiet import quiet_refusals
from rowlake.errors import InvalidStatementError

_MARK = "rowlake.view"


def marked(frame: Any, mark: str) -> Any:
    """Return a DataFrame to be shown as a view, which `is_still_shown` recognises.

    A Connect session looks names up at each use, so that there a column has to carry a mark.
    """
    if not is_remote(frame.sparkSession):
        return frame
    from pyspark.sql import functions

    first, *others = frame.schema.fields
    metadata = {**first.metadata, _MARK: mark}
    return frame.select(
        functions.col(_quoted(first.name)).alias(first.name, metadata=metadata),
        *(_quoted(one.name) for one in others),
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def is_still_shown(spark: Any, name: str, shown: Any, mark: str) -> bool:
    """Return whether a name still means a DataFrame; not where it was dropped or replaced."""
    try:
        with quiet_refusals():
            found = spark.table(name)
            if is_remote(spark):
                return bool(found.schema.fields[0].metadata.get(_MARK) == mark)
            return bool(found.sameSemantics(shown))
    except Exception as error:
        if type(error).__name__ == "AnalysisException":
            return False
        raise


def storage_level(name: str | None) -> Any:
    """Return Spark's storage level of a name; None for the usual one."""
    if name is None:
        return None
    from pyspark import StorageLevel

    found = getattr(StorageLevel, name.strip().upper(), None)
    if not isinstance(found, StorageLevel):
        raise InvalidStatementError(
            f"Unknown storage level {name} (expected one of: MEMORY_ONLY, MEMORY_AND_DISK, "
            "DISK_ONLY, OFF_HEAP, …)."
        )
    return found


def held_in_spark(frame: Any, level: Any) -> Any:
    """Return a DataFrame whose rows Spark keeps once it has read them."""
    return frame.persist() if level is None else frame.persist(level)
