"""The runner of hostile cases: which cases, what is counted, what is left behind."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from tools import hostile

from tests.hostile.mutation import Mutation
from tests.hostile.runner import Case, Finding, Outcome, every_meaning
from tests.hostile.verdicts import Verdict

if TYPE_CHECKING:
    from pathlib import Path


def arguments(**given: object) -> argparse.Namespace:
    usual = {"first": 0, "cases": 60, "every": False, "only": "", "format": "iceberg"}
    return argparse.Namespace(**{**usual, **given})


def numbers(**given: object) -> list[int]:
    return [case.number for case in hostile.cases(arguments(**given), "x")]


def test_cases_are_chosen_by_number_kind_and_name() -> None:
    assert numbers(first=5, cases=3) == [5, 6, 7]
    meanings = hostile.cases(arguments(every=True), "x")
    assert len({case.mutation.name for case in meanings}) == len(meanings)
    assert len(meanings) == every_meaning("x", "iceberg")
    chosen = hostile.cases(arguments(only="version hint"), "x")
    assert chosen
    assert all("version hint" in case.name for case in chosen)


def test_formats_take_turns() -> None:
    found = [
        (case.format, case.number) for case in hostile.cases(arguments(format="", cases=4), "x")
    ]
    assert found == [("iceberg", 0), ("delta", 0), ("iceberg", 1), ("delta", 1)]


def test_findings_are_counted_by_their_place() -> None:
    trace = '  File "/somewhere/src/rowlake/scan/open.py", line 44, in opened\nKeyError: 5'
    mutation = Mutation("any", "data", Verdict.ANY, lambda scene: None)
    tally = hostile.Tally("x")
    for number in (3, 4):
        outcome = Outcome(Case(number, "x", "v2", mutation), operations={"done": 2})
        if number == 4:
            outcome.findings.append(Finding("foreign", "read", "KeyError: 5", trace))
        tally.add(outcome)
        tally.findings.update(found.place for found in outcome.findings)
    assert (tally.cases, tally.failed, tally.operations["done"]) == (2, ["iceberg 4"], 4)
    assert tally.places().split(maxsplit=1) == ["1", "foreign KeyError at scan/open.py:44"]


def test_a_run_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, hostile.__file__, "--seed", "few", "--jobs", "1"]
    environment = {"PATH": "", "PYTHONPATH": ":".join(sys.path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [*command, "--cases", "12", "--only", "statistics"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"seed few: \d+ cases in \d+ s, 0 with findings", done.stdout)
    assert not list(tmp_path.iterdir())
