"""Columns of PySpark as SQL texts: `F.col("s.id") == 1` to `(s.id = 1)`.

The text means what the column means, in the same session. `classic` reads Spark's own tree of a
column, `connect` the message that a Connect client would send; both write with `rendering`. What
has no text in SQL (functions of Python, windows, fields replaced in a struct) is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.engine.column_text.names import SourceNames

if TYPE_CHECKING:
    from collections.abc import Callable

NO_SOURCE = SourceNames()


def column_text(column: Any, source: SourceNames = NO_SOURCE) -> str:
    """Return the SQL text of a column; columns taken from `source` are written with its alias."""
    return _reader(column)(column, source)


def transform_text(column: Any) -> str:
    """Return the text of a partition transform: a name, `days(ts)`, `bucket(4, id)`."""
    return _reader(column)(column, NO_SOURCE, internal=True)


def source_names(frame: Any, fresh: str) -> SourceNames:
    """Return how the columns of a DataFrame are named; `fresh` is the alias of one without any."""
    if _is_remote(frame):
        from rowlake.engine.column_text import connect

        return connect.names_of(frame, fresh)
    from rowlake.engine.column_text import classic

    return classic.names_of(frame, fresh)


def _reader(column: Any) -> Callable[..., str]:
    if _is_remote(column):
        from rowlake.engine.column_text import connect

        return connect.text_of
    from rowlake.engine.column_text import classic

    return classic.text_of


def _is_remote(given: Any) -> bool:
    return type(given).__module__.startswith("pyspark.sql.connect")
