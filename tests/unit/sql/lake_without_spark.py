"""A real lake (SQLite catalog, files) with an engine that has no Spark, for tests of statements.

The session only records what it is asked; frames are Arrow tables that know the few methods that
INSERT calls.
"""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from rowlake.catalog.open import open_catalog
from rowlake.connection import statements
from rowlake.engine.types import spark_schema
from rowlake.lake import Lake
from rowlake.workspace import Workspace


class Frame:
    """Rows as a DataFrame would show them."""

    def __init__(self, rows: pa.Table, expressions: list[str] | None = None) -> None:
        self.rows, self.expressions = rows, expressions or []

    @property
    def schema(self) -> Any:
        return spark_schema(self.rows.schema)

    def toDF(self, *names: str) -> Frame:
        return Frame(self.rows.rename_columns(list(names)))

    def selectExpr(self, *expressions: str) -> Frame:
        columns, names = [], []
        for expression in expressions:
            value, name = re.fullmatch(r"(.*) AS `(.*?)`", expression).groups()  # type: ignore[union-attr]
            column = re.search(r"__\d+", value)
            names.append(name)
            columns.append(
                self.rows[column[0]] if column else pa.nulls(self.rows.num_rows, pa.null())
            )
        return Frame(pa.table(columns, names=names), list(expressions))

    def toArrow(self) -> pa.Table:
        return self.rows

    def collect(self) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self.rows.to_pylist()]


class Session:
    """Records statements; answers queries with what a test prepared."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.frames: list[dict[str, Any]] = []
        self.answer = Frame(pa.table({"one": [1]}))
        self.settings: dict[str, str] = {}
        self.conf = self
        self.catalog = self
        self.views: list[str] = []
        self.kinds: dict[str, str] = {}

    def sql(self, text: str, args: Any = None, **frames: Any) -> Frame:
        self.asked.append(text)
        self.frames.append(frames)
        return self.answer

    def get(self, key: str, default: str | None = None) -> str | None:
        return self.settings.get(key, default)

    def tableExists(self, name: str) -> bool:
        return name in self.views

    def getTable(self, name: str) -> Any:
        kind = self.kinds.get(name, "MANAGED")
        is_temporary = kind == "TEMPORARY"
        return SimpleNamespace(
            name=name,
            catalog="spark_catalog",
            namespace=[],
            tableType=kind,
            isTemporary=is_temporary,
        )

    def listTables(self) -> list[Any]:
        return []

    def range(self, _: int) -> Session:
        return self

    def select(self) -> pa.Table:
        return pa.table({})


class Engine:
    """Runs kernels here and now."""

    has_time = True
    has_session = True
    time_zone = zone = "UTC"
    slots = 1
    parallelism = 1

    def __init__(self) -> None:
        self.spark = self.current_session = Session()

    def setting(self, key: str) -> str | None:
        return self.spark.get(key)

    def from_arrow(self, rows: pa.Table) -> pa.Table:
        return rows

    def raising_plainly(self, rows: Any, _: Any) -> Any:
        return rows

    def read_parquet(self, *_: Any) -> None:
        return None

    def dataframe(self, kernel: Any, tasks: list[Any], output: pa.Schema) -> pa.Table:
        batches = [batch for task in tasks for batch in kernel(task)]
        return pa.Table.from_batches(batches, output)

    def few_rows(self, kernel: Any, tasks: list[Any], output: pa.Schema, **_: Any) -> pa.Table:
        return self.dataframe(kernel, tasks, output)

    def run(self, kernel: Any, tasks: list[Any], output: pa.Schema, **_: Any) -> pa.Table:
        return self.dataframe(kernel, tasks, output)

    def close(self) -> None:
        return None


def lake_without_spark(folder: Any) -> Lake:
    return Lake(Workspace(open_catalog(str(folder), None), Engine()), statements)  # type: ignore[arg-type]
