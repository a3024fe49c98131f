"""Driver-side rows as a DataFrame, sent to the JVM lazily.

Most statements that change rows give one row of counts, at which nobody looks, or which is only
collected: to build it in Java and to fetch it back would take longer than many a small DELETE. DDL,
SHOW and DESCRIBE need no session at all: where there is none, it is made when the frame is used for
more than to look at it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType, StructType

from rowlake.engine.shown_rows import shown_rows
from rowlake.model.shown_table import html_table

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import SparkSession

# What Arrow gives of them to Python is what Spark gives.
_SAME = (BooleanType, IntegerType, LongType, StringType)
_SHOWN_CHARACTERS = 20


class LocalFrame(DataFrame):  # type: ignore[misc] # PySpark is not looked into
    """A DataFrame of a classic session whose rows are at hand, in Spark's types.

    `session` gives the session when it is needed.
    """

    def __new__(cls, *_: Any) -> LocalFrame:
        """Make one without the base's help, which would ask for a frame of Java's."""
        return object.__new__(cls)

    def __init__(
        self, session: Callable[[], SparkSession], table: pa.Table, schema: StructType
    ) -> None:
        self._find_session = session
        self._rows, self._types = table, schema
        # What the base sets; `_session`, `_sc` and `_jdf` follow when they are asked for.
        self.is_cached = False
        self._support_repr_html = False

    def __getattr__(self, name: str) -> Any:
        if name == "_session":
            self._session = self._find_session()
            return self._session
        if name == "_sc":
            self._sc = self._session._sc
            return self._sc
        if name != "_jdf":
            return super().__getattr__(name)
        self._jdf = self._made()._jdf
        return self._jdf

    def _made(self) -> DataFrame:
        if not self._types.names:
            return self._session.range(0).select()
        # PySpark cannot take a table of no batches in.
        rows = self._rows if self._rows.num_rows else []
        return self._session.createDataFrame(rows, self._types)

    def __repr__(self) -> str:
        if "_session" in self.__dict__ or not self._types.names:
            return str(super().__repr__()) if self._types.names else "DataFrame[]"
        shown = (f"{field.name}: {field.dataType.simpleString()}" for field in self._types)
        return f"DataFrame[{', '.join(shown)}]"

    def _repr_html_(self) -> str | None:
        """Show the rows in a notebook; they are at hand, so nothing is run for it."""
        return html_table(self._rows) if self._types.names else None

    @property
    def schema(self) -> StructType:
        """The columns."""
        return StructType(list(self._types.fields))

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._types.names)

    def collect(self) -> list[Row]:
        """Return the rows."""
        if not self._is_plain:
            return list(super().collect())
        row = Row(*self._types.names)
        return [row(*values) for values in self._values()]

    def count(self) -> int:
        """Return how many rows there are."""
        return int(self._rows.num_rows)

    def isEmpty(self) -> bool:
        """Return whether there are no rows."""
        return not self._rows.num_rows

    def toArrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self._rows if self._is_plain else super().toArrow()

    def _show_string(self, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> str:
        most = _SHOWN_CHARACTERS if truncate is True else int(truncate)
        local = self._is_plain and not vertical and isinstance(n, int)
        names, values = self._types.names, self._values() if local else []
        found = shown_rows(names, values, n, most) if local else None
        return str(super()._show_string(n, truncate, vertical)) if found is None else found

    @property
    def _is_plain(self) -> bool:
        return all(isinstance(field.dataType, _SAME) for field in self._types)

    def _values(self) -> list[tuple[Any, ...]]:
        columns = [column.to_pylist() for column in self._rows.columns]
        return list(zip(*columns, strict=True))
