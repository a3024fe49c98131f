"""A query's DataFrame whose actions raise rowlake's errors. Imports pyspark.

A query runs when its rows are asked for. What Spark raises then is translated, as it is for
statements that run at once, on classic sessions and through Spark Connect. DataFrames made of this
one are Spark's own.
"""

from __future__ import annotations

from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any

from rowlake.engine.quiet import quiet_refusals

if TYPE_CHECKING:
    from collections.abc import Callable

    Plainly = Callable[[Exception], Exception | None]

_ACTIONS = (
    *("collect", "count", "first", "foreach", "foreachPartition", "head", "isEmpty", "show"),
    *("tail", "take", "toArrow", "toLocalIterator", "toPandas"),
)
_CLASSIC = "pyspark.sql.classic.dataframe"
_CONNECT = "pyspark.sql.connect.dataframe"


def raising_plainly(frame: Any, plainly: Plainly) -> Any:
    """Return a query's DataFrame that raises what `plainly` makes of Spark's errors.

    What is no DataFrame of Spark's own kinds is returned as it is.
    """
    kind: Any = type(frame)
    if kind.__name__ != "DataFrame" or kind.__module__ not in (_CLASSIC, _CONNECT):
        return frame
    made: Any = object.__new__(_plain_kind(kind))
    made.__dict__.update(frame.__dict__)
    made._plainly = plainly
    return made


@lru_cache(maxsize=2)
def _plain_kind(kind: Any) -> Any:
    """Return a kind of DataFrame whose actions translate errors."""
    actions = {name: _translating(getattr(kind, name)) for name in _ACTIONS}
    about = "A DataFrame; `_plainly` gives the error to raise for one of Spark's."
    return type("QueryFrame", (kind,), {"__doc__": about, **actions})


def _translating(action: Any) -> Any:
    @wraps(action)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        try:
            with quiet_refusals():
                return action(self, *args, **options)
        except Exception as error:
            found = self._plainly(error)
            if found is None:
                raise
            raise found from None

    return run
