"""Run the tests as `make test` does: all folders in one process, so that they share one JVM.

Comes in: arguments for pytest (none: everything). Goes out: pytest's exit code. Without arguments
that name tests, unit tests come first, so that a plain mistake shows before Spark starts.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from rowlake.engine.java import java_home
from rowlake.errors import EngineError

ROOT = Path(__file__).resolve().parent.parent
FIRST = ("unit", "sql", "model", "concurrency", "spark", "interop", "faults")


def prepare_environment() -> None:
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    try:
        home = java_home()
    except EngineError as error:
        sys.exit(str(error))
    if home is not None:
        os.environ["JAVA_HOME"] = home
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def test_folders() -> list[str]:
    """Return the folders that have tests: the known ones in order, then any other."""
    present = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    tops = {folder.relative_to(ROOT / "tests").parts[0] for folder in present}
    ordered = [name for name in FIRST if name in tops] + sorted(tops - set(FIRST))
    return [f"tests/{name}" for name in ordered]


def names_tests(argument: str) -> bool:
    return not argument.startswith("-") and Path(argument.split("::")[0]).exists()


def main() -> None:
    prepare_environment()
    arguments = sys.argv[1:]
    if not any(map(names_tests, arguments)):
        arguments += test_folders()
    sys.exit(pytest.main(arguments))


if __name__ == "__main__":
    main()
