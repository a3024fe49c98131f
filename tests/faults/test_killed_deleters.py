"""A writer killed (-9) at every step from its first file to the commit and after it.

A process deletes rows of a data file while another writer's delete of other rows of it lands in
between, so that it goes through a rebase too; it kills itself before or after the n-th step that
changes anything outside of it. The table is then at one commit or the other, whole.
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

DELETE = 'table.delete("id = 6 OR id = 7", mode="merge-on-read")'


def make(warehouse: Path, catalog: str | None, kind: str) -> None:
    with connect(str(warehouse), catalog) as lake:
        lake.create_namespace("shop")
        table = lake.create_table(NAME, SALES, **table_of(kind))
        table.append(sales(20))
        table.delete("id = 1", mode="merge-on-read")


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "catalog, kind", [("filesystem", "2"), (None, "delta")], ids=["filesystem-v2", "delta"]
)
def test_a_killed_deleter_leaves_one_commit_or_the_other(tmp_path, catalog, kind) -> None:
    work = Work(catalog, NAME, DELETE)
    make(tmp_path / "whole", catalog, kind)
    steps, ended = run_writer(work, str(tmp_path / "whole"), Death(at=0))
    assert (ended, steps >= 8) == (0, True)
    # After a step is before the next one, but for the last.
    deaths = [Death(at) for at in range(1, steps + 1)] + [Death(steps, "after")]
    warehouses = [tmp_path / f"{death.at}-{death.side}" for death in deaths]
    for warehouse, death in zip(warehouses, deaths, strict=True):
        make(warehouse, catalog, kind)
        assert run_writer(work, str(warehouse), death) == (None, -signal.SIGKILL)
    landed = [has_landed(warehouse, catalog) for warehouse in warehouses]
    assert set(landed) == {False, True}


def has_landed(warehouse: Path, catalog: str | None) -> bool:
    """Check that a table is at a commit, and that the next writer goes on from there."""
    default_cache().clear()
    with connect(str(warehouse), catalog) as lake:
        table = lake.table(NAME)
        ids = set(table.arrow(["id"])["id"].to_pylist())
        landed = 6 not in ids
        gone = {1} | ({5} if 5 not in ids else set()) | ({6, 7} if landed else set())
        assert ids == set(range(20)) - gone
        table.delete("id = 6 OR id = 8", mode="merge-on-read")
        assert set(table.arrow(["id"])["id"].to_pylist()) == ids - {6, 8}
        check_log(table)
    return landed
