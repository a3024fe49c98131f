"""The same statements on Iceberg's Java runtime give the same rows, or fail too.

Rowlake reads at once what Java made of a table; at the end Java reads all of it itself, many tables
in one query. Cases with a `java` line are left out: it says what Spark or Iceberg refuses or gets
wrong.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest

import rowlake
from tests.sql.case_files import load_cases
from tests.sql.java import JavaResult, read_on_java, run_on_java
from tests.sql.tables import JAVA_MODES, modes_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.sql.case_files import Case
    from tests.sql.tables import Mode, Stage

# Numbers start anew in each file, as when the rows were filled in: the modes are the same.
NUMBERED = [
    pytest.param(number, case, modes_of(case, JAVA_MODES, number)[0], id=str(case))
    for _, cases in groupby(load_cases(), lambda case: case.file)
    for number, case in enumerate(cases)
    if case.java is None
]


@pytest.fixture(scope="module")
def java_lake(spark: Any, java_warehouse: Path) -> Iterator[rowlake.Lake]:
    """Our view of the folder of Java's catalog."""
    with rowlake.connect(str(java_warehouse), catalog="filesystem", spark=spark) as lake:
        yield lake


@pytest.fixture(scope="module")
def results() -> list[JavaResult]:
    """What the cases that ran so far left in Java's catalog."""
    return []


@pytest.mark.parametrize(("number", "case", "mode"), NUMBERED)
def test_java_does_what_the_case_says(
    stage: Stage,
    java_catalog: str,
    java_warehouse: Path,
    java_lake: rowlake.Lake,
    results: list[JavaResult],
    number: int,
    case: Case,
    mode: Mode,
):
    space = f"{case.file}_{number}"
    stage.copy_for_java(case, mode, java_warehouse, space)
    with stage.surroundings(case):
        done = run_on_java(stage, case, java_warehouse, java_catalog, space, java_lake)
    if case.error is None:
        assert done.error is None
        assert done.rows == case.rows
        results += [JavaResult(space, name, tuple(rows)) for name, rows in case.rows.items()]
        assert done.result == case.result
    else:
        assert done.error is not None
        assert not done.committed


def test_java_reads_all_of_its_results_itself(
    stage: Stage, java_catalog: str, results: list[JavaResult]
) -> None:
    assert results, "runs after the cases of this module"
    found = read_on_java(stage.lake.spark, java_catalog, results)
    assert found == {result: list(result.rows) for result in results}
