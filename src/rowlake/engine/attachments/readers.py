"""`spark.read`, `spark.catalog` and the texts of `spark.sql`, in a session with a lake."""

from __future__ import annotations

import fnmatch
import string
from copy import copy
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql.catalog import Column as CatalogColumn
from pyspark.sql.catalog import Database, Table

from rowlake.engine.attachments.recording import overridden, texts
from rowlake.engine.attachments.registry import plain_spark
from rowlake.engine.column_text import column_text
from rowlake.engine.jobs import is_remote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.engine.attachments.drop_in import DropIn, TableFacts

_MANAGED = "MANAGED"


def formatted(session: Any, text: str, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a statement with the values of `{names}` in it, and the DataFrames that it names."""
    if not given:
        return text, {}
    formatter = _Formatter(session)
    return formatter.format(text, **given), formatter.frames


class _Formatter(string.Formatter):
    """PySpark's formatter of statements, but for DataFrames, which become no views."""

    def __init__(self, session: Any) -> None:
        self.frames: dict[str, Any] = {}
        self._plain = _plain_formatter(session)

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        found, first = super().get_field(field_name, args, kwargs)
        return self._converted(found, field_name), first

    def _converted(self, value: Any, field_name: str) -> Any:
        if isinstance(value, DataFrame):
            known = (name for name, frame in self.frames.items() if frame is value)
            name = next(known, f"__frame_{len(self.frames)}_{id(self):x}")
            self.frames[name] = value
            return f"`{name}`"
        if isinstance(value, Column):
            return column_text(value)
        return self._plain._convert_value(value, field_name)


def _plain_formatter(session: Any) -> Any:
    if is_remote(session):
        from pyspark.sql.connect.sql_formatter import SQLStringFormatter as ConnectFormatter

        return ConnectFormatter(session)
    from pyspark.sql.sql_formatter import SQLStringFormatter

    return SQLStringFormatter(session)


# --- spark.read


def frame_reader(lake: DropIn, _session: Any, made: Any) -> Any:
    """Return `spark.read`."""
    return overridden(made, LakeReader, _lake=lake, _provider=None, _asked={})


class LakeReader:
    """Reads tables of a lake, and all else as PySpark does."""

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
        found = self._lake.table(tableName, self._asked) if isinstance(tableName, str) else None
        if found is not None:
            return found
        with plain_spark():
            return super().table(tableName)  # type: ignore[misc]

    def load(self, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> Any:
        provider = str(format or self._provider or "")
        if isinstance(path, str) and schema is None:
            asked = {**self._asked, **texts(options)}
            found = self._lake.load(provider, path, asked)
            if found is not None:
                return found
        with plain_spark():
            return super().load(path, format, schema, **options)  # type: ignore[misc]


# --- spark.catalog


def session_catalog(lake: DropIn, _session: Any, made: Any) -> Any:
    """Return `spark.catalog`: Spark's own, which knows the lake's tables too."""
    # Spark keeps one catalog a session, which stays Spark's own.
    return overridden(copy(made), LakeCatalog, _lake=lake)


class LakeCatalog:
    """Spark's catalog, with the namespaces and tables of a lake before Spark's own."""

    _lake: DropIn

    def tableExists(self, tableName: str, dbName: str | None = None) -> bool:
        if self._facts(tableName, dbName) is not None:
            return True
        with plain_spark():
            try:
                return bool(super().tableExists(tableName, dbName))  # type: ignore[misc]
            except AnalysisException:
                return False  # a namespace that only the lake has

    def getTable(self, tableName: str) -> Any:
        found = self._facts(tableName)
        if found is not None:
            return self._shown(found)
        with plain_spark():
            return super().getTable(tableName)  # type: ignore[misc]

    def listTables(self, dbName: str | None = None, pattern: str | None = None) -> list[Any]:
        ours = self._lake.table_facts(dbName)
        shown = [self._shown(each) for each in ours or () if _matches(each.name, pattern)]
        names = {each.name for each in shown}
        with plain_spark():
            try:
                theirs = super().listTables(dbName, pattern)  # type: ignore[misc]
            except AnalysisException:
                if ours is None:
                    raise
                theirs = []
        return shown + [each for each in theirs if each.isTemporary or each.name not in names]

    def listColumns(self, tableName: str, dbName: str | None = None) -> list[Any]:
        found = self._facts(tableName, dbName)
        if found is None:
            with plain_spark():
                return list(super().listColumns(tableName, dbName))  # type: ignore[misc]
        return [
            CatalogColumn(
                field.name,
                field.metadata.get("comment"),
                field.dataType.simpleString(),
                field.nullable,
                field.name in found.partition_columns,
                False,
                False,
            )
            for field in found.schema.fields
        ]

    def databaseExists(self, dbName: str) -> bool:
        if dbName in self._lake.namespaces():
            return True
        with plain_spark():
            return bool(super().databaseExists(dbName))  # type: ignore[misc]

    def listDatabases(self, pattern: str | None = None) -> list[Any]:
        catalog = self._lake.catalog_name
        shown = [
            Database(name, catalog, None, "")
            for name in self._lake.namespaces()
            if _matches(name, pattern)
        ]
        names = {each.name for each in shown}
        with plain_spark():
            theirs = super().listDatabases(pattern)  # type: ignore[misc]
        return shown + [each for each in theirs if each.name not in names]

    def currentDatabase(self) -> str:
        return self._lake.current_namespace

    def setCurrentDatabase(self, dbName: str) -> None:
        if not self._lake.use(dbName):
            with plain_spark():
                super().setCurrentDatabase(dbName)  # type: ignore[misc]

    def cacheTable(self, tableName: str, storageLevel: Any = None) -> None:
        if self._facts(tableName) is None or storageLevel is not None:
            with plain_spark():
                super().cacheTable(tableName, storageLevel)  # type: ignore[misc]
        else:
            self._lake.sql(f"CACHE TABLE {tableName}", None, {})

    def uncacheTable(self, tableName: str) -> None:
        if self._facts(tableName) is None:
            with plain_spark():
                super().uncacheTable(tableName)  # type: ignore[misc]
        else:
            self._lake.sql(f"UNCACHE TABLE {tableName}", None, {})

    def refreshTable(self, tableName: str) -> None:
        if self._facts(tableName) is None:
            with plain_spark():
                super().refreshTable(tableName)  # type: ignore[misc]
        else:
            self._lake.sql(f"REFRESH TABLE {tableName}", None, {})

    def _facts(self, name: str, namespace: str | None = None) -> TableFacts | None:
        if not isinstance(name, str):
            return None
        return self._lake.facts(name if namespace is None else f"{namespace}.{name}")

    def _shown(self, facts: TableFacts) -> Table:
        namespace, catalog = list(facts.namespace), self._lake.catalog_name
        return Table(facts.name, catalog, namespace, facts.description, _MANAGED, False)


def _matches(name: str, pattern: str | None) -> bool:
    """Return whether a name is like a pattern of Spark's: `*` for any text, `|` between several."""
    if pattern is None:
        return True
    return any(fnmatch.fnmatch(name.lower(), each.lower()) for each in pattern.split("|"))
