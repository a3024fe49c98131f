"""`df.write` and `df.writeTo`, in a session with a lake.

Writers keep what they are told. The method that ends a write offers it to the lake; what is not
the lake's is done by PySpark, which was told the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as functions

from rowlake.engine.attachments.drop_in import WriteRequest
from rowlake.engine.attachments.recording import flat, overridden, texts
from rowlake.engine.attachments.registry import plain_spark
from rowlake.engine.column_text import column_text, transform_text
from rowlake.engine.column_text.names import quoted

if TYPE_CHECKING:
    from rowlake.engine.attachments.drop_in import DropIn


def frame_writer(lake: DropIn, frame: Any, made: Any) -> Any:
    """Return `df.write`."""
    return overridden(made, LakeWriter, _lake=lake, _asked=WriteRequest(frame))


def table_writer(lake: DropIn, frame: Any, table: str, made: Any) -> Any:
    """Return `df.writeTo(table)`."""
    return overridden(made, LakeTableWriter, _lake=lake, _asked=WriteRequest(frame, table))


class LakeWriter:
    """`df.write`: saveAsTable, insertInto and save of the formats that a lake has."""

    _lake: DropIn
    _asked: WriteRequest

    def mode(self, saveMode: str | None) -> Any:
        if saveMode is not None:
            self._asked.mode = saveMode
        return super().mode(saveMode)  # type: ignore[misc]

    def format(self, source: str) -> Any:
        self._asked.provider = source
        return super().format(source)  # type: ignore[misc]

    def option(self, key: str, value: Any) -> Any:
        self._asked.options.update(texts({key: value}))
        return super().option(key, value)  # type: ignore[misc]

    def options(self, **options: Any) -> Any:
        self._asked.options.update(texts(options))
        return super().options(**options)  # type: ignore[misc]

    def partitionBy(self, *cols: Any) -> Any:
        self._asked.partitioned_by = tuple(quoted(str(each)) for each in flat(cols))
        return super().partitionBy(*cols)  # type: ignore[misc]

    def bucketBy(self, *arguments: Any, **options: Any) -> Any:
        self._asked.other.add("bucketBy")
        return super().bucketBy(*arguments, **options)  # type: ignore[misc]

    def sortBy(self, *arguments: Any, **options: Any) -> Any:
        self._asked.other.add("sortBy")
        return super().sortBy(*arguments, **options)  # type: ignore[misc]

    def clusterBy(self, *cols: Any) -> Any:
        self._asked.other.add("clusterBy")
        return super().clusterBy(*cols)  # type: ignore[misc]

    def saveAsTable(
        self,
        name: str,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        self._told(format, mode, partitionBy, options)
        if not self._done("saveAsTable", name):
            with plain_spark():
                super().saveAsTable(name)  # type: ignore[misc]

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:
        if overwrite is not None:
            self.mode("overwrite" if overwrite else "append")
        if not self._done("insertInto", tableName):
            with plain_spark():
                super().insertInto(tableName)  # type: ignore[misc]

    def save(
        self,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        self._told(format, mode, partitionBy, options)
        if path is None or not self._done("save", path):
            with plain_spark():
                super().save(path)  # type: ignore[misc]

    def _told(self, format: str | None, mode: str | None, columns: Any, options: Any) -> None:
        self.mode(mode).options(**options)
        if columns is not None:
            self.partitionBy(columns)
        if format is not None:
            self.format(format)

    def _done(self, verb: str, name: str) -> bool:
        self._asked.verb, self._asked.name = verb, name
        return isinstance(name, str) and self._lake.write(self._asked)


class LakeTableWriter:
    """`df.writeTo(table)`."""

    _lake: DropIn
    _asked: WriteRequest

    def using(self, provider: str) -> Any:
        self._asked.provider = provider
        return super().using(provider)  # type: ignore[misc]

    def option(self, key: str, value: Any) -> Any:
        self._asked.options.update(texts({key: value}))
        return super().option(key, value)  # type: ignore[misc]

    def options(self, **options: Any) -> Any:
        self._asked.options.update(texts(options))
        return super().options(**options)  # type: ignore[misc]

    def tableProperty(self, property: str, value: str) -> Any:
        self._asked.properties[property] = value
        return super().tableProperty(property, value)  # type: ignore[misc]

    def partitionedBy(self, col: Any, *cols: Any) -> Any:
        self._asked.partitioned_by = tuple(map(_transform, (col, *cols)))
        return super().partitionedBy(col, *cols)  # type: ignore[misc]

    def clusterBy(self, col: str, *cols: str) -> Any:
        self._asked.other.add("clusterBy")
        return super().clusterBy(col, *cols)  # type: ignore[misc]

    def create(self) -> None:
        self._done("create")

    def replace(self) -> None:
        self._done("replace")

    def createOrReplace(self) -> None:
        self._done("createOrReplace")

    def append(self) -> None:
        self._done("append")

    def overwrite(self, condition: Any) -> None:
        column = functions.col(condition) if isinstance(condition, str) else condition
        if self._lake.has_table(self._asked.name):
            self._asked.condition = column_text(column)
        self._done("overwrite", condition)

    def overwritePartitions(self) -> None:
        self._done("overwritePartitions")

    def _done(self, verb: str, *arguments: Any) -> None:
        self._asked.verb = verb
        if not self._lake.write(self._asked):
            with plain_spark():
                getattr(super(), verb)(*arguments)


def _transform(column: Any) -> str:
    return transform_text(column) if isinstance(column, Column) else quoted(str(column))
