"""An upsert killed (-9) at every step: none of its rows are there, or all of them.

It updates rows of a data file and adds others while another writer deletes a row of that file; a
rewritten file is lost to that writer, so the upsert is planned anew.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from rowlake import connect
from rowlake.iceberg.cache import default_cache
from tests.lakes import SALES, sales
from tests.parts.killed import Death, Work, check_log, run_writer, table_of

if TYPE_CHECKING:
    from pathlib import Path

NAME = "shop.sales"
ROWS = '[{"id": id, "note": "new"} for id in (6, 7, 100, 101)]'
CHANGED, ADDED = {6, 7}, {100, 101}


def make(warehouse: Path, kind: str) -> None:
    with connect(str(warehouse)) as lake:
        lake.create_namespace("shop")
        table = lake.create_table(NAME, SALES, **table_of(kind))
        table.append(sales(20))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "kind, mode",
    [("3", "merge-on-read"), ("delta", "copy-on-write")],
    ids=["vectors", "delta"],
)
def test_a_killed_upsert_leaves_one_commit_or_the_other(tmp_path, kind, mode) -> None:
    operation = f'table.upsert({ROWS}, ["id"], mode="{mode}")'
    work = Work(None, NAME, operation)
    make(tmp_path / "whole", kind)
    steps, ended = run_writer(work, str(tmp_path / "whole"), Death(at=0))
    assert (ended, steps >= 8) == (0, True)
    deaths = [Death(at) for at in range(1, steps + 1)] + [Death(steps, "after")]
    warehouses = [tmp_path / f"{death.at}-{death.side}" for death in deaths]
    for warehouse, death in zip(warehouses, deaths, strict=True):
        make(warehouse, kind)
        assert run_writer(work, str(warehouse), death) == (None, -signal.SIGKILL)
    landed = [has_landed(warehouse, mode) for warehouse in warehouses]
    assert set(landed) == {False, True}


def has_landed(warehouse: Path, mode: str) -> bool:
    """Check that a table is at a commit, and that the same upsert goes on from there."""
    default_cache().clear()
    with connect(str(warehouse)) as lake:
        table = lake.table(NAME)
        before = notes(table)
        landed = before[6] == "new"
        ids = set(range(20)) - ({5} if 5 not in before else set()) | (ADDED if landed else set())
        assert set(before) == ids
        new = {number for number, note in before.items() if note == "new"}
        assert new == (CHANGED | ADDED if landed else set())
        rows = [{"id": number, "note": "new"} for number in CHANGED | ADDED]
        result = table.upsert(rows, ["id"], mode=mode)
        assert (result.snapshot_id is None) == landed
        after = notes(table)
        assert after == {**before, **dict.fromkeys(CHANGED | ADDED, "new")}
        check_log(table)
    return landed


def notes(table) -> dict[int, str | None]:
    found = table.arrow(["id", "note"])
    assert len(set(found["id"].to_pylist())) == found.num_rows
    return dict(zip(found["id"].to_pylist(), found["note"].to_pylist(), strict=True))
