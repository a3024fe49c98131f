"""Run the tests as `make test` does.

Comes in: arguments for pytest. Goes out: pytest's report and exit code. Where the arguments name
no tests, all run, in two lanes side by side: each lane is one process with at most one JVM, so
that one waits for Java while the other computes. The first lane's report is shown as it comes
(unit tests first, so that a plain mistake shows early), the second's when the first is done, then
the counts of both together.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import IO

import pytest

from rowlake.engine.java import java_home
from rowlake.errors import EngineError

ROOT = Path(__file__).resolve().parent.parent
# Folders that take about as long together; any other joins the second lane.
FIRST_LANE = ("unit", "model", "concurrency", "faults", "spark")
KINDS = ("failures", "errors", "skipped")
NOTHING_RAN = int(pytest.ExitCode.NO_TESTS_COLLECTED)


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


def lanes(tests: Path) -> list[list[str]]:
    """Return the folders that have tests, by lane; lanes without any are left out."""
    tops = {path.relative_to(tests).parts[0] for path in tests.rglob("test_*.py")}
    first = [name for name in FIRST_LANE if name in tops]
    second = sorted(tops - set(FIRST_LANE))
    return [[str(tests / name) for name in lane] for lane in (first, second) if lane]


def names_tests(argument: str) -> bool:
    return not argument.startswith("-") and Path(argument.split("::")[0]).exists()


def run_lanes(folders: list[list[str]], arguments: list[str]) -> int:
    started = monotonic()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowlake-tests-")))
        # The first lane writes to the terminal itself.
        outputs: list[IO[bytes] | None] = [None]
        outputs += [stack.enter_context(tempfile.TemporaryFile()) for _ in folders[1:]]
        processes = [
            stack.enter_context(_started(lane, arguments, place / f"{number}.xml", output))
            for number, (lane, output) in enumerate(zip(folders, outputs, strict=True))
        ]
        for process, output in zip(processes, outputs, strict=True):
            process.wait()
            _show(output)
        reports = [counts(place / f"{number}.xml") for number in range(len(folders))]
    code = exit_code([process.returncode for process in processes])
    print(f"\n{told(sum(reports, Counter()))} in {monotonic() - started:.0f} s")
    return code


def _started(
    lane: list[str], arguments: list[str], report: Path, output: IO[bytes] | None
) -> subprocess.Popen[bytes]:
    colour = ["--color=yes"] if sys.stdout.isatty() else []
    command = [sys.executable, __file__, *colour, f"--junit-xml={report}", *arguments, *lane]
    return subprocess.Popen(command, stdout=output, stderr=None if output is None else output)


def _show(output: IO[bytes] | None) -> None:
    if output is not None:
        output.seek(0)
        sys.stdout.flush()
        sys.stdout.buffer.write(output.read())
        sys.stdout.flush()


def counts(report: Path) -> Counter[str]:
    """Return how many tests ran, failed and were skipped; one error for a lane that broke off."""
    if not report.exists():
        return Counter(tests=0, errors=1)
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    return Counter(
        {kind: sum(int(suite.get(kind, 0)) for suite in suites) for kind in ("tests", *KINDS)}
    )


def told(found: Counter[str]) -> str:
    passed = found["tests"] - sum(found[kind] for kind in KINDS)
    others = [f"{found[kind]} {kind}" for kind in KINDS if found[kind]]
    return ", ".join([f"{found['tests']} tests: {passed} passed", *others])


def exit_code(codes: list[int]) -> int:
    """Return the worst of the lanes; a lane in which nothing was selected is no failure."""
    ran = [code for code in codes if code != NOTHING_RAN]
    failed = [code for code in ran if code != 0]
    return failed[0] if failed else (0 if ran else NOTHING_RAN)


def main() -> None:
    prepare_environment()
    arguments = sys.argv[1:]
    if any(map(names_tests, arguments)):
        sys.exit(pytest.main(arguments))
    sys.exit(run_lanes(lanes(Path("tests")), arguments))


if __name__ == "__main__":
    main()
