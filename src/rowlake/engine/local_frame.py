"""Driver-side rows as a DataFrame, sent to the JVM lazily.

Most statements that change rows give one row of counts, at which nobody looks, or which is only
collected: to build it in Java and to fetch it back would take longer than many a small DELETE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

# What Arrow gives of them to Python is what Spark gives.
_SAME = (BooleanType, IntegerType, LongType, StringType)


class LocalFrame(DataFrame):  # type: ignore[misc] # PySpark is not looked into
    """A DataFrame of a classic session whose rows are at hand, in Spark's types."""

    def __new__(cls, *_: Any) -> LocalFrame:
        """Make one without the base's help, which would ask for a frame of Java's."""
        return object.__new__(cls)

    def __init__(self, session: SparkSession, table: pa.Table, schema: StructType) -> None:
        super().__init__(None, session)
        self.__dict__.pop("_jdf")
        self._rows, self._types = table, schema

    def __getattr__(self, name: str) -> Any:
        if name != "_jdf":
            return super().__getattr__(name)
        self._jdf = self._session.createDataFrame(self._rows, self._types)._jdf
        return self._jdf

    def collect(self) -> list[Row]:
        """Return the rows."""
        if not all(isinstance(field.dataType, _SAME) for field in self._types):
            return list(super().collect())
        row = Row(*self._types.names)
        columns = [column.to_pylist() for column in self._rows.columns]
        return [row(*values) for values in zip(*columns, strict=True)]
