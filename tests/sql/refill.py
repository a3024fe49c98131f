"""Fill the rows of cases with what Iceberg's Java runtime reads afterwards.

`python -m tests.sql.refill [file …]` writes rows into the case files; look at the diff. A statement
that fails gets `-- error: InvalidStatementError` where the case names no error yet.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import rowlake
from rowlake.engine.session import make_session
from tests.spark_session import iceberg_settings
from tests.sql.case_files import FOLDER, read_cases, text_of_case
from tests.sql.java import run_on_java
from tests.sql.tables import JAVA_MODES, Stage, modes_of

if TYPE_CHECKING:
    from tests.sql.case_files import Case
    from tests.sql.java import Done


def refill(names: list[str]) -> None:
    """Rewrite the named files, or all of them."""
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Path(folder) / "java"
        settings = {
            "spark.master": "local[2]",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.warehouse.dir": f"{folder}/spark",
            **iceberg_settings(warehouse),
        }
        spark, _ = make_session(settings)
        with rowlake.connect(f"{folder}/lake", spark=spark) as lake:
            stage = Stage(lake)
            for file in sorted((FOLDER / "cases").glob("*.sql")):
                if not names or file.stem in names:
                    _refill_file(file, stage, warehouse)
        spark.stop()


def _refill_file(file: Path, stage: Stage, warehouse: Path) -> None:
    filled = []
    for number, case in enumerate(read_cases(file)):
        space = f"{file.stem}_{number}"
        (mode,) = modes_of(case, JAVA_MODES, number)
        stage.copy_for_java(case, mode, warehouse, space)
        with stage.surroundings(case):
            done = run_on_java(stage, case, warehouse, "java", space)
        filled.append(_filled(case, done))
        _compare_counts(filled[-1], stage)
    file.write_text("\n".join(map(text_of_case, filled)))


def _filled(case: Case, done: Done) -> Case:
    if done.error is not None:
        first = str(done.error).strip().splitlines()[0]
        print(f"{case.file}: {case.name}: {type(done.error).__name__}: {first[:300]}", flush=True)
        if case.java is not None:
            return case
        error = case.error or "InvalidStatementError"
        return dataclasses.replace(case, error=error, rows={}, counts=None, result=None)
    if case.error is not None or case.java is not None:
        print(f"{case.file}: {case.name}: DID NOT FAIL", flush=True)
        if case.java is not None and case.error is not None:
            return case
    return dataclasses.replace(case, rows=done.rows, result=done.result, error=None)


def _compare_counts(case: Case, stage: Stage) -> None:
    """Tell where the counts, which Java does not give, cannot be right."""
    if case.counts is None or "db.t" not in case.rows or len(case.statements) > 1:
        return
    if "branch_" in case.statements[0]:
        return
    before = stage.lake.table(("layouts", case.tables["t"])).arrow().num_rows
    after = before + case.counts["inserted"] - case.counts["deleted"]
    if after != len(case.rows["db.t"]) - 1:
        print(f"{case.file}: {case.name}: counts do not explain the rows", flush=True)


if __name__ == "__main__":
    refill(sys.argv[1:])
