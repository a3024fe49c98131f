"""The runner of the whole suite: parts, counts, exit codes."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tools import run_tests

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tests of two parts: two that pass, one that is skipped, one that fails."""
    for name, text in {
        "unit/test_a.py": "def test_one(): pass\ndef test_two(): pass\n",
        "interop/test_b.py": (
            "import pytest\n"
            "def test_bad(): assert 'seen' == 'not'\n"
            "@pytest.mark.skip(reason='no server')\ndef test_skipped(): pass\n"
        ),
        "parts/helper.py": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_folders_with_tests_are_in_one_part_each(folder: Path) -> None:
    (folder / "more").mkdir()
    (folder / "more" / "test_c.py").write_text("")
    (folder / "interop" / "test_lake_on_servers.py").write_text("")
    parts = run_tests.parts_of(folder)
    servers = str(folder / "interop" / "test_lake_on_servers.py")
    assert [part.paths for part in parts] == [
        (str(folder / "unit"),),
        (str(folder / "interop"),),
        (servers,),
        (str(folder / "more"),),
    ]
    assert [run_tests.apart(part, parts) for part in parts] == [[], [f"--ignore={servers}"], [], []]


def test_every_folder_of_this_project_is_run(pytestconfig: pytest.Config) -> None:
    tests = pytestconfig.rootpath / "tests"
    found = {path for part in run_tests.parts_of(tests) for path in part.paths}
    tops = {str(tests / path.relative_to(tests).parts[0]) for path in tests.rglob("test_*.py")}
    assert tops <= found


def test_every_file_of_this_project_is_run_once(pytestconfig: pytest.Config) -> None:
    tests = pytestconfig.rootpath / "tests"
    parts = run_tests.parts_of(tests)

    def is_in(file: Path, paths: list[str] | tuple[str, ...]) -> bool:
        return any(str(place) in paths for place in (file, *file.parents))

    for file in tests.rglob("test_*.py"):
        ran_by = [
            part.paths
            for part in parts
            if is_in(file, part.paths)
            and not is_in(file, [one.split("=", 1)[1] for one in run_tests.apart(part, parts)])
        ]
        assert len(ran_by) == 1, f"{file} is run by {ran_by}"


@pytest.mark.parametrize(
    ("codes", "expected"), [([0, 0], 0), ([0, 1], 1), ([5, 0], 0), ([5, 5], 5), ([2, 5], 2)]
)
def test_a_failure_in_any_part_fails_the_run(codes: list[int], expected: int) -> None:
    assert run_tests.exit_code(codes) == expected


def test_both_reports_are_shown_and_summed(folder: Path, capfd) -> None:
    plain = ["-p", "no:cacheprovider", "-c", str(folder / "none.ini")]
    (folder / "none.ini").write_text("[pytest]\n")
    assert run_tests.run_parts(run_tests.parts_of(folder), plain) == 1
    out = capfd.readouterr().out
    assert "2 passed" in out
    assert "assert 'seen' == 'not'" in out
    assert "4 tests: 2 passed, 1 failures, 1 skipped in" in out
    assert "SKIPPED: 1 tests" in out
    assert "1 x no server\n      interop.test_b::test_skipped\n" in out
    assert "LEFT OUT OR SHORTENED" in out
    assert run_tests.run_parts(run_tests.parts_of(folder), [*plain, "-k", "one"]) == 0
    out = capfd.readouterr().out
    assert "1 tests: 1 passed in" in out
    assert "SKIPPED: nothing" in out


def test_a_part_that_broke_off_is_an_error(tmp_path: Path) -> None:
    assert run_tests.counts(tmp_path / "none.xml") == Counter(errors=1)
    assert "1 errors" in run_tests.told(Counter(errors=1))


def test_named_tests_run_in_one_process(folder: Path) -> None:
    command = [sys.executable, run_tests.__file__, str(folder / "unit"), "-q", "-c"]
    done = subprocess.run([*command, "/dev/null"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "2 passed" in done.stdout


def test_skips_are_told_by_reason_with_the_most_frequent_first() -> None:
    found = [run_tests.Skip(f"t{n}", "no Java" if n else "no Docker") for n in range(3)]
    told = run_tests.skips_told(found).splitlines()
    assert told[1].startswith("SKIPPED: 3 tests")
    assert told[2:] == ["  2 x no Java", "      t1 and 1 more", "  1 x no Docker", "      t0"]


def test_what_a_run_shortened_is_told_unless_it_was_asked_for() -> None:
    names = {name for name, _, _ in run_tests.SHORTENED}
    assert run_tests.left_out(dict.fromkeys(names, "all")) == ""
    told = run_tests.left_out({"ROWLAKE_SOAK": "60"})
    assert "make soak" not in told and "ROWLAKE_CONFORMANCE=all" in told


def test_variables_of_shortened_tests_are_those_that_tests_read(
    pytestconfig: pytest.Config,
) -> None:
    texts = "".join(path.read_text() for path in (pytestconfig.rootpath / "tests").rglob("*.py"))
    assert [name for name, _, _ in run_tests.SHORTENED if f'"{name}"' not in texts] == []
