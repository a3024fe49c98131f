"""The DataFrame of a table's rows, which counts and collects without Spark's rows. Imports pyspark.

`count()`, `toArrow()` and `toPandas()` of the whole frame need no row to pass through the JVM:
rowlake counts by metadata where it can, and reads as Arrow. DataFrames made of this one are
Spark's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

from rowlake.engine.query_frame import QueryFrame

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.engine.query_frame import Plainly

# PySpark converts values inside of these by what only batches of the JVM carry.
_NESTED = (ArrayType, MapType, StructType, VariantType)


@dataclass(frozen=True)
class Shortcuts:
    """How rowlake counts and reads the rows of a frame; `rows` come in Spark's types."""

    count: Callable[[], int]
    rows: Callable[[], pa.Table]


class TableFrame(QueryFrame):
    """A DataFrame of a classic session over rows that rowlake reads by itself."""

    def __init__(self, frame: Any, plainly: Plainly, shortcuts: Shortcuts) -> None:
        super().__init__(frame, plainly)
        self._shortcuts = shortcuts

    def count(self) -> int:
        """Return the number of rows."""
        return self._shortcuts.count()

    def _collect_as_arrow(
        self, split_batches: bool = False, empty_list_if_zero_records: bool = True
    ) -> list[pa.RecordBatch]:
        """Return all rows; PySpark's `toArrow` and `toPandas` convert what they get here."""
        if any(isinstance(field.dataType, _NESTED) for field in self.schema.fields):
            return list(super()._collect_as_arrow(split_batches, empty_list_if_zero_records))
        table = self._shortcuts.rows()
        batches: list[pa.RecordBatch] = table.to_batches()
        if batches or empty_list_if_zero_records:
            return batches
        return [pa.RecordBatch.from_pylist([], schema=table.schema)]
