"""The runner of hostile cases: which cases, what is counted, what is left behind."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from tools import hostile

from tests.hostile.mutation import Mutation
from tests.hostile.runner import Case, Finding, Outcome, case_of, every_meaning
from tests.hostile.verdicts import Verdict

if TYPE_CHECKING:
    from pathlib import Path


def arguments(**given: object) -> argparse.Namespace:
    return argparse.Namespace(**{"first": 0, "cases": 60, "every": False, "only": "", **given})


def test_cases_are_chosen_by_number_kind_and_name() -> None:
    assert hostile.numbers(arguments(first=5, cases=3), "x") == [5, 6, 7]
    meanings = hostile.numbers(arguments(every=True, cases=every_meaning("x")), "x")
    names = {case_of("x", number).mutation.name for number in meanings}
    assert len(names) == len(meanings) == every_meaning("x")
    chosen = hostile.numbers(arguments(only="version hint"), "x")
    assert chosen
    assert all("version hint" in case_of("x", number).name for number in chosen)


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
    assert (tally.cases, tally.failed, tally.operations["done"]) == (2, [4], 4)
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
