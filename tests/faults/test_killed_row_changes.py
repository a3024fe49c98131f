"""Every row-level verb killed (-9) between two of its steps, in both modes and on both formats.

Another writer deletes a row of the same data file meanwhile. The table then has all of the change
or none of it, and the next writer goes on from there. A run kills a quarter of the combinations at
three steps each, others with every commit; `ROWLAKE_KILLS=all` kills all of them at every step.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from rowlake import connect
from rowlake.iceberg.cache import default_cache
from tests.faults.row_level import VERBS
from tests.faults.test_row_level_faults import CASES, catalog_of, make, name_of
from tests.lakes import rows_of
from tests.parts.killed import Death, Work, run_writer
from tests.parts.rotation import in_turn, turn

if TYPE_CHECKING:
    from pathlib import Path

MODULE = "__import__('tests.faults.row_level', fromlist=['VERBS'])"
OVERTAKEN = 7  # the row that the other writer deletes is none of the change's


def deaths_of(steps: int) -> list[Death]:
    """Return where to die: after a step is before the next one, but for the last."""
    every = [*(Death(at) for at in range(1, steps + 1)), Death(steps, "after")]
    if os.environ.get("ROWLAKE_KILLS") == "all":
        return every
    first = turn() % steps
    return [every[first], every[(first + steps // 2) % steps], every[-1]]


EVERY = [pytest.param(*case, verb, id="-".join((*case, verb))) for verb in VERBS for case in CASES]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "mode", "verb"), in_turn(EVERY, 4, "ROWLAKE_KILLS"))
def test_a_killed_row_change_is_whole_or_not_there(
    tmp_path: Path, kind: str, mode: str, verb: str
) -> None:
    before, wanted = undisturbed(tmp_path / "whole", kind, mode, verb)
    counted = tmp_path / "counted"
    make(kind, counted)
    steps, ended = run_writer(work_of(kind, mode, verb, counted), str(counted / "lake"), Death(0))
    assert (ended, rows(kind, counted)) == (0, without_overtaken(wanted))
    assert steps is not None and steps >= 3
    for death in deaths_of(steps):
        place = tmp_path / f"{death.at}-{death.side}"
        make(kind, place)
        work = work_of(kind, mode, verb, place)
        assert run_writer(work, str(place / "lake"), death) == (None, -signal.SIGKILL)
        found = rows(kind, place)
        assert without_overtaken(found) in map(without_overtaken, (before, wanted)), death
        assert goes_on(kind, place) == [row for row in found if row[0] != 101], death


def work_of(kind: str, mode: str, verb: str, place: Path) -> Work:
    operation = f"{MODULE}.VERBS[{verb!r}](table, {mode!r})"
    return Work(catalog_of(kind), name_of(kind, place), operation, OVERTAKEN)


def undisturbed(place: Path, kind: str, mode: str, verb: str) -> tuple[list[Any], list[Any]]:
    """Return the rows before and after the change where nobody dies."""
    make(kind, place)
    before = rows(kind, place)
    with connect(str(place / "lake"), catalog_of(kind)) as lake:
        VERBS[verb](lake.table(name_of(kind, place)), mode)
    return before, rows(kind, place)


def without_overtaken(found: list[Any]) -> list[Any]:
    return [row for row in found if row[0] != OVERTAKEN]


def rows(kind: str, place: Path) -> list[Any]:
    default_cache().clear()
    with connect(str(place / "lake"), catalog_of(kind)) as lake:
        return rows_of(lake.table(name_of(kind, place)).arrow())


def goes_on(kind: str, place: Path) -> list[Any]:
    with connect(str(place / "lake"), catalog_of(kind)) as lake:
        assert lake.table(name_of(kind, place)).delete("id = 101").rows_deleted == 1
    return rows(kind, place)
