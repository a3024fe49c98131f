"""Run the tests as `make test` does.

Comes in: arguments for pytest. Goes out: pytest's reports and an exit code. If the arguments name
no tests, all run, in parts, three at a time: usually one of them waits for Java or for a server
while the others compute. A part is one process with at most one JVM. Its report is shown when it is
done; at the end come the counts of all parts, and which tests were skipped or left out and why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import xml.etree.ElementTree as ElementTree
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import pytest

from rowlake.engine.java import java_home
from rowlake.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parent.parent
# Unit tests of most rooms first, so that a plain mistake shows early; then long parts before short
# ones, so that all lanes end together. Tests of servers wait more than they compute, and few need
# Spark. A path that is named is not run again with the folder that it is in; folders that are not
# named are a part each, at the end.
PARTS = (
    ("unit",),
    ("interop",),
    ("spark/test_other_sessions.py",),
    ("spark",),
    ("faults",),
    ("unit/rowlevel", "unit/stream"),
    ("model", "concurrency"),
    ("sql",),
    ("unit/maintain", "unit/commit", "unit/delta"),
    (
        "interop/test_catalog_postgres.py",
        "interop/test_catalog_rest.py",
        "interop/test_catalog_s3.py",
        "interop/test_transactions_on_servers.py",
        "interop/test_lake_on_servers.py",
    ),
    ("hostile",),
    ("matrix",),
)
LANES = 3
KINDS = ("failures", "errors", "skipped")
IN_MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 10 * 1024**3
# In a JVM that lives for minutes on few cores, neither the second compiler nor a garbage collector
# with threads of its own pays off.
BRIEF_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# What `make test` does only in part: the variable that changes it, what it is, how to run it all.
SHORTENED = (
    (
        "ROWLAKE_CONFORMANCE",
        "statements in one of the modes of their case, another one with every commit",
        "ROWLAKE_CONFORMANCE=all",
    ),
    ("ROWLAKE_MATRIX_PART", "a part of the matrix of concurrent statements", "make matrix"),
    ("ROWLAKE_SOAK", "writers beside maintenance, for seconds", "make soak"),
    ("ROWLAKE_STREAM_KILLS", "streams that are killed", "make streams-long"),
    ("ROWLAKE_ROW_LEVEL_HISTORIES", "random histories", "make fuzz"),
    ("ROWLAKE_KILLS", "a quarter of the killed writers, at three steps", "ROWLAKE_KILLS=all"),
    ("ROWLAKE_FAULTS", "a quarter of the row-level faults", "ROWLAKE_FAULTS=all"),
    ("ROWLAKE_BROWSER", "the page in a browser", "make test-integrations"),
)
NOTHING_RAN = int(pytest.ExitCode.NO_TESTS_COLLECTED)


@dataclass
class Part:
    """Paths of tests for one process, and its outcome."""

    paths: tuple[str, ...]
    code: int = NOTHING_RAN
    counts: Counter[str] | None = None
    skips: list[Skip] = field(default_factory=list)


@dataclass(frozen=True)
class Skip:
    """A test that did not run."""

    test: str
    reason: str


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
    if has_room_in_memory():
        os.environ.setdefault("TMPDIR", str(IN_MEMORY))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_SUBMIT_OPTS", BRIEF_JVM)


def has_room_in_memory() -> bool:
    """Return whether tests can keep their files in memory, since many would wait for the disk."""
    return IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > ENOUGH_BYTES


def names_tests(argument: str) -> bool:
    return not argument.startswith("-") and Path(argument.split("::")[0]).exists()


def parts_of(tests: Path) -> list[Part]:
    """Return everything under a folder that has tests, each file in one part."""
    tops = {path.relative_to(tests).parts[0] for path in tests.rglob("test_*.py")}
    named = {name.partition("/")[0] for group in PARTS for name in group}
    others = tuple((name,) for name in sorted(tops - named))
    groups = [
        tuple(str(tests / name) for name in group if (tests / name).exists())
        for group in (*PARTS, *others)
    ]
    return [Part(paths) for paths in groups if paths]


def apart(part: Part, others: list[Part]) -> list[str]:
    """Return options that exclude paths in this part's folders that other parts run."""
    inside = [path for other in others for path in other.paths if other is not part]
    return [f"--ignore={path}" for path in inside if Path(path).parent.as_posix() in part.paths]


def run_parts(parts: list[Part], arguments: list[str]) -> int:
    started = monotonic()
    waiting, printing = deque(parts), threading.Lock()
    with tempfile.TemporaryDirectory(prefix="rowlake-tests-") as folder:

        def lane() -> None:
            while True:
                try:
                    part = waiting.popleft()
                except IndexError:
                    return
                report = Path(folder) / f"{parts.index(part)}.xml"
                _run(part, [*arguments, *apart(part, parts)], report, printing)

        threads = [threading.Thread(target=lane) for _ in range(LANES)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        finally:
            waiting.clear()  # after Ctrl-C nothing new may start
    total = sum((part.counts or Counter(errors=1) for part in parts), Counter())
    print(skips_told([skip for part in parts for skip in part.skips]))
    print(left_out(os.environ))
    print(f"\n{told(total)} in {monotonic() - started:.0f} s")
    return exit_code([part.code for part in parts])


def _run(part: Part, arguments: list[str], report: Path, printing: threading.Lock) -> None:
    started = monotonic()
    colour = ["--color=yes"] if sys.stdout.isatty() else []
    command = [sys.executable, __file__, *colour, f"--junit-xml={report}", *arguments, *part.paths]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    part.code, part.counts, part.skips = done.returncode, counts(report), skips(report)
    with printing:
        print(f"\n{' '.join(part.paths)} ({monotonic() - started:.0f} s)", flush=True)
        sys.stdout.buffer.write(done.stdout)
        sys.stdout.flush()


def counts(report: Path) -> Counter[str]:
    """Return how many tests ran, failed and were skipped; one error for a part that crashed."""
    if not report.exists():
        return Counter(tests=0, errors=1)
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    return Counter(
        {kind: sum(int(suite.get(kind, 0)) for suite in suites) for kind in ("tests", *KINDS)}
    )


def skips(report: Path) -> list[Skip]:
    """Return the tests that pytest skipped; a module that was skipped as a whole counts as one."""
    if not report.exists():
        return []
    return [
        Skip(f"{case.get('classname')}::{case.get('name')}".strip(":"), found.get("message") or "?")
        for case in ElementTree.parse(report).getroot().iter("testcase")
        for found in case.findall("skipped")
    ]


def skips_told(found: list[Skip]) -> str:
    """Return what was skipped, by reason, the most frequent one first."""
    if not found:
        return "\nSKIPPED: nothing"
    reasons = Counter(skip.reason for skip in found).most_common()
    lines = [f"\nSKIPPED: {len(found)} tests. Set CI=1 to make a missing part a failure."]
    for reason, count in reasons:
        first = next(skip.test for skip in found if skip.reason == reason)
        others = f" and {count - 1} more" if count > 1 else ""
        lines.append(f"  {count} x {reason}\n      {first}{others}")
    return "\n".join(lines)


def left_out(environment: Mapping[str, str]) -> str:
    """Return what this run shortened, and how to run all of it."""
    lines = [f"  {what}: {how}" for name, what, how in SHORTENED if name not in environment]
    return "\n".join(["", "LEFT OUT OR SHORTENED for time:", *lines]) if lines else ""


def told(found: Counter[str]) -> str:
    passed = found["tests"] - sum(found[kind] for kind in KINDS)
    others = [f"{found[kind]} {kind}" for kind in KINDS if found[kind]]
    return ", ".join([f"{found['tests']} tests: {passed} passed", *others])


def exit_code(codes: list[int]) -> int:
    """Return the first failure of the parts; a part in which nothing was selected is none."""
    ran = [code for code in codes if code != NOTHING_RAN]
    failed = [code for code in ran if code != 0]
    return failed[0] if failed else (0 if ran else NOTHING_RAN)


def main() -> None:
    prepare_environment()
    arguments = sys.argv[1:]
    if any(map(names_tests, arguments)):
        sys.exit(pytest.main(arguments))
    sys.exit(run_parts(parts_of(Path("tests")), arguments))


if __name__ == "__main__":
    main()
