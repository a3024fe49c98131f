"""The same statements on Iceberg's Java runtime give the same rows, or fail too.

Cases with a `java` line are left out: it says what Spark or Iceberg refuses or gets wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.sql.case_files import load_cases
from tests.sql.java import run_on_java
from tests.sql.tables import JAVA_MODES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sql.case_files import Case
    from tests.sql.tables import Mode, Stage

NUMBERED = [
    pytest.param(number, case, JAVA_MODES[number % len(JAVA_MODES)], id=str(case))
    for number, case in enumerate(load_cases())
    if case.java is None
]


@pytest.mark.parametrize(("number", "case", "mode"), NUMBERED)
def test_java_does_what_the_case_says(
    stage: Stage,
    spark: Any,
    java_catalog: str,
    java_warehouse: Path,
    number: int,
    case: Case,
    mode: Mode,
):
    space = f"case_{number}"
    stage.copy_for_java(case, mode, java_warehouse, space)
    with stage.surroundings(case):
        done = run_on_java(spark, case, java_warehouse, java_catalog, space)
    if case.error is None:
        assert done.error is None
        assert done.rows == case.rows
    else:
        assert done.error is not None
        assert not done.committed
