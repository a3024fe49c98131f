"""A query's DataFrame whose actions raise rowlake's errors. Imports pyspark.

A query runs when its rows are asked for. What Spark raises then is translated, as it is for
statements that run at once, on classic sessions and through Spark Connect. DataFrames made of this
one are Spark's own.
"""

from __future__ import annotations

import warnings
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

from pyspark.sql.classic.dataframe import DataFrame

from rowlake.engine.quiet import quiet_refusals

if TYPE_CHECKING:
    from collections.abc import Callable

    Plainly = Callable[[Exception], Exception | None]

_ACTIONS = (
    *("collect", "count", "first", "foreach", "foreachPartition", "head", "isEmpty", "show"),
    *("tail", "take", "toArrow", "toLocalIterator", "toPandas"),
)
_CONNECT = "pyspark.sql.connect.dataframe"
# What `toPandas` warns of before it raises the same.
_TOLD_TWICE = r"(?s)toPandas attempted Arrow optimization .* can not continue"


class QueryFrame(DataFrame):  # type: ignore[misc] # PySpark is not looked into
    """A DataFrame of a classic session; `plainly` gives the error to raise for one of Spark's."""

    def __new__(cls, *_: Any) -> QueryFrame:
        """Make one without the base's help, which would make a plain one."""
        return object.__new__(cls)

    def __init__(self, frame: Any, plainly: Plainly) -> None:
        super().__init__(frame._jdf, frame.sparkSession)
        self._plainly = plainly


def _translating(action: Any) -> Any:
    @wraps(action)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        try:
            with quiet_refusals(), warnings.catch_warnings():
                warnings.filterwarnings("ignore", _TOLD_TWICE)
                return action(self, *args, **options)
        except Exception as error:
            found = self._plainly(error)
            if found is None:
                raise
            raise found from None

    return run


for _name in _ACTIONS:
    setattr(QueryFrame, _name, _translating(getattr(DataFrame, _name)))


@cache
def _connect_kind() -> Any:
    """Return the same kind of DataFrame for Spark Connect, whose packages may not be installed."""
    from pyspark.sql.connect.dataframe import DataFrame as Remote

    actions = {name: _translating(getattr(Remote, name)) for name in _ACTIONS}
    return type("ConnectQueryFrame", (Remote,), actions)


def raising_plainly(frame: Any, plainly: Plainly) -> Any:
    """Return a query's DataFrame that raises rowlake's errors."""
    if type(frame) is DataFrame:
        return QueryFrame(frame, plainly)
    if (type(frame).__module__, type(frame).__name__) != (_CONNECT, "DataFrame"):
        return frame
    made: Any = object.__new__(_connect_kind())
    made.__dict__.update(frame.__dict__)
    made._plainly = plainly
    return made
