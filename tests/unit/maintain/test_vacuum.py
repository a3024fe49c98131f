"""VACUUM: expired snapshots' files and orphans, as Delta's users mean it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rowlake.errors import InvalidStatementError
from rowlake.maintain.cleanup import vacuum as vacuuming
from tests.lakes import SALES, files_in, make_lake, rows_of, sales

if TYPE_CHECKING:
    from rowlake.table import Table

DAY = 24 * 60 * 60


@pytest.fixture
def table(tmp_path: Path, table_format: str) -> Table:
    lake = make_lake(tmp_path / "wh")
    lake.create_namespace("db")
    made = lake.create_table("db.t", SALES)
    made.append(sales(8))
    made.overwrite(sales(4))
    folder = Path(made.location) / "data"
    for name, days in (("old", 8), ("young", 6)):
        (folder / name).write_bytes(b"")
        when = time.time() - days * DAY
        os.utime(folder / name, (when, when))
    return made


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is eight days later for VACUUM: all snapshots are old, the file `young` too."""
    now = time.time
    monkeypatch.setattr(vacuuming.time, "time", lambda: now() + 8 * DAY)


def test_without_old_snapshots_only_orphans_go(table: Table) -> None:
    report = table.vacuum(dry_run=False)
    assert [Path(one).name for one in report.path] == ["old"]
    assert report.expired_snapshot_ids == ()


def test_a_dry_run_lists_what_a_run_removes(table: Table, later: None) -> None:
    del later
    rows, before = rows_of(table.arrow()), files_in(table.location)
    table.set_properties({"write.metadata.previous-versions-max": "1"})
    before = files_in(table.location)
    planned = table.vacuum()
    assert files_in(table.location) == before
    assert planned.expired_snapshot_ids
    done = table.vacuum(dry_run=False)
    assert done.path == planned.path
    assert done.expired_snapshot_ids == planned.expired_snapshot_ids
    assert {one for one in before if one not in files_in(table.location)} == set(done.path)
    assert rows_of(table.arrow()) == rows
    assert len(table.snapshots()) == 1


@pytest.mark.parametrize("hours", [0, 23.9, -1, float("nan"), "7", True])
def test_less_than_a_day_is_refused(table: Table, hours: Any) -> None:
    before = files_in(table.location)
    with pytest.raises(InvalidStatementError, match=r"VACUUM|vacuum"):
        table.vacuum(retain_hours=hours, dry_run=False)
    assert files_in(table.location) == before


def test_a_short_retention_is_what_the_user_typed(table: Table) -> None:
    assert {Path(one).name for one in table.vacuum(retain_hours=24).path} == {"old", "young"}
    assert "files count" in str(table.vacuum())
