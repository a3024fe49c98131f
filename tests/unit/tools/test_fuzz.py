"""The runner of random histories: numbers dealt to processes, divergences, what is left behind."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

from tools import fuzz

from tests.histories.history import Divergence

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def run_fuzz(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, fuzz.__file__, "--seed", "few", "--steps", "2", *arguments]
    environment = {"PATH": "", "PYTHONPATH": ":".join(sys.path), "TMPDIR": str(folder)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_histories_are_the_same_whatever_process_runs_them(tmp_path: Path) -> None:
    few = fuzz.Tally("few", 2)
    histories = fuzz.outcomes(range(3, 6), few, str(tmp_path), jobs=1, way=fuzz.Way())
    one = [done.operations for done in histories]
    (tmp_path / "jobs").mkdir()
    found = run_fuzz(tmp_path / "jobs", "--first", "3", "--histories", "3", "--jobs", "2")
    assert found.returncode == 0, found.stderr
    assert re.search(rf": 3 histories, {sum(one)} operations, 0 divergences", found.stdout)
    assert not list((tmp_path / "jobs").iterdir())


def test_a_history_that_goes_wrong_is_cut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    def attempted(_ground: object, _seed: str, number: int, places: list[int]) -> fuzz.Done:
        if number == 7 and 2 in places:
            raise Divergence(f"steps {places}")
        return fuzz.Done(number, len(places))

    monkeypatch.setattr(fuzz, "attempt", attempted)
    monkeypatch.setattr(fuzz, "_GROUNDS", [None])
    tally = fuzz.Tally("any", 4)
    for number in (6, 7, 8):
        tally.add(fuzz.outcome_of("any", 4, number))
    assert fuzz.outcome_of("any", 4, 7) == fuzz.Done(7, 0, "steps [2]")
    assert (tally.histories, tally.operations, tally.failed) == (3, 8, [7])
