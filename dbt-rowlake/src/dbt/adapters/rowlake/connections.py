"""A connection of dbt's: a lake of this process, opened once for each warehouse."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.spark.connections import (
    SparkConnectionManager,
    SparkConnectionMethod,
    SparkCredentials,
)
from dbt.adapters.spark.session import Cursor, SessionConnectionWrapper
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

import rowlake

_COUNT = "num_affected_rows"
_lakes: dict[tuple[Any, ...], rowlake.Lake] = {}
_opening = threading.Lock()


@dataclass
class RowlakeCredentials(SparkCredentials):
    """What a profile says: `warehouse` and `catalog` as `rowlake.connect` takes them.

    `remote` is the address of a Spark Connect server; `server_side_parameters` are settings of the
    session.
    """

    method: SparkConnectionMethod = SparkConnectionMethod.SESSION
    host: str | None = "localhost"
    warehouse: str | None = None
    catalog: str | dict[str, Any] | None = None
    remote: str | None = None

    @property
    def type(self) -> str:
        return "rowlake"

    @property
    def unique_field(self) -> str:
        return str(self.warehouse or self.catalog)

    def _connection_keys(self) -> tuple[str, ...]:
        return ("warehouse", "schema", "remote")


def lake_of(credentials: RowlakeCredentials) -> rowlake.Lake:
    """Return the lake of a profile; all connections of the process share it."""
    catalog = credentials.catalog
    named = tuple(sorted(catalog.items())) if isinstance(catalog, Mapping) else catalog
    key = (credentials.warehouse, named, credentials.remote)
    with _opening:
        if key not in _lakes:
            _lakes[key] = _opened(credentials)
        return _lakes[key]


def _opened(credentials: RowlakeCredentials) -> rowlake.Lake:
    spark = None
    if credentials.remote:
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.remote(credentials.remote).getOrCreate()
    lake = rowlake.connect(credentials.warehouse, credentials.catalog, spark)
    for name, value in credentials.server_side_parameters.items():
        lake.spark.conf.set(name, value)
    lake.engine.progress = False
    return lake


class LakeCursor(Cursor):
    """Runs statements on a lake; rows are fetched when they are asked for."""

    def __init__(self, lake: rowlake.Lake) -> None:
        super().__init__()
        self._lake = lake

    def execute(self, sql: str, *parameters: Any) -> None:
        self._rows = None
        self._df = self._lake.sql(sql % parameters if parameters else sql)

    @property
    def rows_affected(self) -> int | None:
        """How many rows the last statement changed, None where it says nothing of it."""
        if self._df is None or _COUNT not in self._df.columns:
            return None
        return int(self._df.collect()[0][_COUNT])


class LakeHandle:
    """What a connection of dbt's holds."""

    def __init__(self, lake: rowlake.Lake) -> None:
        self.lake = lake

    def cursor(self) -> LakeCursor:
        return LakeCursor(self.lake)


class LakeConnectionWrapper(SessionConnectionWrapper):
    """dbt-spark's wrapper, with values as SQL literals."""

    @property
    def lake(self) -> rowlake.Lake:
        return self.handle.lake

    @property
    def rows_affected(self) -> int | None:
        return None if self._cursor is None else self._cursor.rows_affected

    def fetchone(self) -> Any:
        return self._cursor.fetchone()

    @classmethod
    def _fix_binding(cls, value: Any) -> str:
        """Return a value of a seed as a literal; its type is given by the cast around it."""
        if value is None:
            return "NULL"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (int, float, Decimal)):
            return f"'{value}'"
        if isinstance(value, datetime.datetime):
            return f"'{value.isoformat(sep=' ')}'"
        text = str(value).replace("\\", "\\\\").replace("'", "\\'")
        return f"'{text}'"


class RowlakeConnectionManager(SparkConnectionManager):
    """Opens lakes."""

    TYPE = "rowlake"

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        if connection.state != ConnectionState.OPEN:
            try:
                lake = lake_of(connection.credentials)
            except Exception as error:
                raise DbtDatabaseError(f"Cannot open the lake: {error}") from error
            connection.handle = LakeConnectionWrapper(LakeHandle(lake))
            connection.state = ConnectionState.OPEN
        return connection

    @classmethod
    def get_response(cls, cursor: Any) -> AdapterResponse:
        count = getattr(cursor, "rows_affected", None)
        if count is None:
            return AdapterResponse(_message="OK")
        return AdapterResponse(_message=f"OK {count}", rows_affected=count)

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        try:
            yield
        except DbtRuntimeError:
            raise
        except Exception as error:
            raise DbtDatabaseError(str(error)) from error
