"""A case run by Iceberg's Java runtime."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tests.sql.tables import named_alike, placed
from tests.sql.texts import arrow_of, lines_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sql.case_files import Case
    from tests.sql.tables import Stage


TABLES_OF_A_QUERY = 16
NUMBER = "number of the table"


@dataclass(frozen=True)
class Done:
    """The rows asked for, or how the last statement failed; and whether db.t has a new version.

    `result` is what the last statement returned, where the case asks for it.
    """

    rows: dict[str, list[str]]
    error: Exception | None
    committed: bool
    result: list[str] | None = None


@dataclass(frozen=True)
class JavaResult:
    """A table in a namespace of Java's catalog (`db.t`, or a branch of it), with its rows."""

    space: str
    name: str
    rows: tuple[str, ...]


def read_on_java(
    spark: Any, catalog: str, results: list[JavaResult]
) -> dict[JavaResult, list[str]]:
    """Return the lines that Java reads of each table; tables of one schema share a query."""
    groups: dict[Any, list[tuple[JavaResult, Any]]] = {}
    for result in results:
        frame = spark.table(placed(result.name, f"{catalog}.{result.space}"))
        names = tuple((field.name, field.dataType.simpleString()) for field in frame.schema)
        groups.setdefault(names, []).append((result, frame))
    found = {}
    for group in groups.values():
        for first in range(0, len(group), TABLES_OF_A_QUERY):
            part = group[first : first + TABLES_OF_A_QUERY]
            numbered = [
                frame.selectExpr(f"{number} AS `{NUMBER}`", "*")
                for number, (_, frame) in enumerate(part)
            ]
            rows = arrow_of(reduce(lambda one, other: one.union(other), numbered))
            for number, (result, _) in enumerate(part):
                own = rows.filter(pc.equal(rows[NUMBER], number)).drop([NUMBER])
                found[result] = lines_of(own)
    return found


def run_on_java(
    stage: Stage, case: Case, warehouse: Path, catalog: str, space: str, lake: Any = None
) -> Done:
    """Run the statements of a case on tables that are there already.

    Java reads what came of them; with a lake on its folder rowlake does, which is much quicker.
    """
    spark = stage.lake.spark
    (warehouse / "default").mkdir(exist_ok=True)
    spark.sql(f"USE {catalog}")
    try:
        return _run(stage, case, warehouse, catalog, space, lake)
    finally:
        spark.sql("USE spark_catalog.default")


def _run(stage: Stage, case: Case, warehouse: Path, catalog: str, space: str, lake: Any) -> Done:
    spark = stage.lake.spark
    *first, last = [
        re.sub(r"\bsystem\.", f"{catalog}.system.", statement)
        for statement in stage.statements(case, f"{catalog}.{space}")
    ]
    for statement in first:
        spark.sql(statement)
    hint = warehouse / space / "t" / "metadata" / "version-hint.text"
    version = hint.read_text()
    try:
        returned = spark.sql(last)
        result = None if case.result is None else lines_of(arrow_of(returned))
        if case.error is not None:  # a query fails when its rows are asked for
            returned.collect()
    except (PySparkException, Py4JJavaError) as error:
        return Done({}, error, hint.read_text() != version)
    rows = {
        name: _rows(spark, name, f"{catalog}.{space}") if lake is None else _read(lake, name, space)
        for name in case.rows or (("db.t",) if case.result is None else ())
    }
    result = named_alike(result, space, catalog)
    return Done(rows, None, hint.read_text() != version, result)


def _rows(spark: Any, name: str, space: str) -> list[str]:
    return lines_of(arrow_of(spark.sql(f"SELECT * FROM {placed(name, space)}")))


def _read(lake: Any, name: str, space: str) -> list[str]:
    _, table, *branch = name.split(".")
    ref = branch[0].removeprefix("branch_") if branch else None
    return lines_of(lake.table((space, table)).arrow(ref=ref))
