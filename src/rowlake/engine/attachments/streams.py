"""`spark.readStream` and `df.writeStream`, in a session with a lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.engine.attachments.drop_in import StreamRequest
from rowlake.engine.attachments.recording import flat, overridden, texts
from rowlake.engine.attachments.registry import plain_spark
from rowlake.engine.column_text.names import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.engine.attachments.drop_in import DropIn


def stream_reader(lake: DropIn, _session: Any, made: Any) -> Any:
    """Return `spark.readStream`."""
    return overridden(made, LakeStreamReader, _lake=lake, _provider=None, _asked={})


def stream_writer(lake: DropIn, frame: Any, made: Any) -> Any:
    """Return `df.writeStream`."""
    return overridden(made, LakeStreamWriter, _lake=lake, _asked=StreamRequest(frame))


class LakeStreamReader:
    """Reads what lands in tables of a lake."""

    _lake: DropIn
    _provider: str | None
    _asked: dict[str, str]

    def format(self, source: str) -> Any:
        self._provider = source
        return super().format(source)  # type: ignore[misc]

    def option(self, key: str, value: Any) -> Any:
        self._asked.update(texts({key: value}))
        return super().option(key, value)  # type: ignore[misc]

    def options(self, **options: Any) -> Any:
        self._asked.update(texts(options))
        return super().options(**options)  # type: ignore[misc]

    def table(self, tableName: str) -> Any:
        known = isinstance(tableName, str)
        found = self._lake.read_stream(tableName, self._asked) if known else None
        if found is not None:
            return found
        with plain_spark():
            return super().table(tableName)  # type: ignore[misc]

    def load(self, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> Any:
        provider = format or self._provider
        if isinstance(path, str) and provider and schema is None:
            asked = {**self._asked, **texts(options)}
            found = self._lake.read_stream(path, asked, str(provider))
            if found is not None:
                return found
        with plain_spark():
            return super().load(path, format, schema, **options)  # type: ignore[misc]


class LakeStreamWriter:
    """Starts queries into tables of a lake; each batch lands exactly once."""

    _lake: DropIn
    _asked: StreamRequest

    def outputMode(self, outputMode: str) -> Any:
        self._asked.output_mode = outputMode
        return super().outputMode(outputMode)  # type: ignore[misc]

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

    def clusterBy(self, *cols: Any) -> Any:
        self._asked.other.add("clusterBy")
        return super().clusterBy(*cols)  # type: ignore[misc]

    def queryName(self, queryName: str) -> Any:
        self._asked.query_name = queryName
        return super().queryName(queryName)  # type: ignore[misc]

    def trigger(self, **trigger: Any) -> Any:
        self._asked.trigger = {key: each for key, each in trigger.items() if each is not None}
        return super().trigger(**trigger)  # type: ignore[misc]

    def foreachBatch(self, func: Callable[[Any, int], None]) -> Any:
        return super().foreachBatch(self._lake.for_batches(func))  # type: ignore[misc]

    def toTable(
        self,
        tableName: str,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: Any = None,
        queryName: str | None = None,
        **options: Any,
    ) -> Any:
        self.options(**options)
        if outputMode is not None:
            self.outputMode(outputMode)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        if format is not None:
            self.format(format)
        if queryName is not None:
            self.queryName(queryName)
        self._asked.name = tableName
        query = self._lake.write_stream(self._asked) if isinstance(tableName, str) else None
        if query is not None:
            return query
        with plain_spark():
            return super().toTable(tableName)  # type: ignore[misc]
