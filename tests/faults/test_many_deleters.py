"""Many processes that delete rows of one data file at once: each row goes once, none comes back.

`ROWLAKE_RACE=8x50` runs the long form: so many processes, so many commits of each.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from rowlake import connect
from tests.lakes import SALES, sales
from tests.parts.deleters import delete_any_rows, delete_rows
from tests.parts.failing import CATALOGS, stray_files
from tests.parts.marking import live_deletes_of
from tests.parts.race import race

if TYPE_CHECKING:
    from pathlib import Path

NAME = "shop.sales"
PROCESSES, COMMITS = map(int, os.environ.get("ROWLAKE_RACE", "3x8").split("x"))


@pytest.fixture(params=CATALOGS, ids=["sqlite", "filesystem"])
def catalog(request):
    return request.param


@pytest.fixture
def warehouse(tmp_path: Path, catalog) -> Path:
    """A table of one data file; its retries are those that any table has."""
    version = "3" if catalog is None else "2"
    with connect(str(tmp_path), catalog) as lake:
        lake.create_namespace("shop")
        table = lake.create_table(NAME, SALES, properties={"format-version": version})
        table.append(sales(2 * PROCESSES * COMMITS))
    return tmp_path


@pytest.mark.timeout(900)
def test_deletes_of_other_rows_of_one_file_all_commit(warehouse: Path, catalog) -> None:
    done = race(delete_rows, PROCESSES, str(warehouse), catalog, NAME, COMMITS, timeout_seconds=800)
    count = PROCESSES * COMMITS
    retries, seconds = sum(one[0] for one in done), max(one[1] for one in done)
    print(f"{count} commits, {retries} retries, {seconds:.1f} s")
    with connect(str(warehouse), catalog) as lake:
        table = lake.table(NAME)
        assert sorted(table.arrow(["id"])["id"].to_pylist()) == list(range(count, 2 * count))
        assert list(live_deletes_of(table).values()) == [[count]]
        snapshots = table.snapshots()[1:]
        assert [one.sequence_number for one in snapshots] == list(range(2, count + 2))
        totals = [int(one.summary["total-position-deletes"]) for one in snapshots]
        assert totals == list(range(1, count + 1))
    assert stray_files(warehouse, catalog, NAME) == set()


@pytest.mark.timeout(900)
def test_a_row_that_all_want_to_delete_is_deleted_by_one(warehouse: Path, catalog) -> None:
    done = race(
        delete_any_rows, PROCESSES, str(warehouse), catalog, NAME, COMMITS, timeout_seconds=800
    )
    assert sorted(row for rows in done for row in rows) == list(range(COMMITS))
    with connect(str(warehouse), catalog) as lake:
        kept = list(range(COMMITS, 2 * PROCESSES * COMMITS))
        assert sorted(lake.table(NAME).arrow(["id"])["id"].to_pylist()) == kept
    assert stray_files(warehouse, catalog, NAME) == set()
