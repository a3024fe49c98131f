"""Comparing two snapshots: which rows changed, and when the page does not say."""

from __future__ import annotations

import threading

import pytest

from rowlake.errors import InvalidStatementError
from rowlake.ui import diffs
from rowlake.ui.diffs import Comparing, cell_text
from tests.lakes import SALES, sales


@pytest.fixture
def table(lake):
    made = lake.create_table("ns.k", SALES)
    made.append(sales(6))
    return made


def compared(table, start, end, keys=("id",)):
    return Comparing(table.lake.engine).diff(table.handle, start, end, keys)


def test_rows_are_counted_and_shown_with_the_cells_that_changed(table) -> None:
    start = table.handle.current_snapshot_id
    changed = [{**row, "store": 9} for row in sales(1).to_pylist()]
    table.upsert(changed, keys=["id"])
    table.append(sales(1, 100))
    found = compared(table, start, table.handle.current_snapshot_id)
    assert found.counts == {"update_preimage": 1, "update_postimage": 1, "insert": 1}
    before, after, added = found.rows
    assert (before.cells[:2], after.cells[:2]) == (("0", "0"), ("0", "9"))
    assert before.marked == after.marked == {1}
    assert (added.kind, added.cells[0], added.marked) == ("insert", "100", frozenset())
    assert found.command.startswith(f"rowlake changes ns.k --start {start} --end ")
    assert found.command.endswith(" --key id")


def test_without_a_start_the_first_rows_are_inserts(table) -> None:
    found = compared(table, None, table.handle.current_snapshot_id, ())
    assert found.counts == {"insert": 6}
    assert "--start" not in found.command


def test_the_page_shows_rows(browser, table) -> None:
    start = table.handle.current_snapshot_id
    table.delete("id = 2")
    end = str(table.handle.current_snapshot_id)
    text = browser.get("/table/changes", name="ns.k", start=str(start), end=end).text
    assert '<td class="delete">2</td>' in text
    assert f"rowlake changes ns.k --start {start} --end {end}" in text


@pytest.mark.parametrize("end", ["1", "x", "-", "9" * 30, "<script>"])
def test_snapshots_that_are_none_are_told_plainly(browser, table, end: str) -> None:
    answer = browser.get("/table/changes", name="ns.k", start="", end=end)
    assert answer.status == 200
    assert "Not comparable" in answer.text
    assert "<script>" not in answer.text


def test_columns_that_are_none_are_told_plainly(table) -> None:
    with pytest.raises(InvalidStatementError):
        compared(table, None, table.handle.current_snapshot_id, ("nope",))


def test_work_for_spark_is_refused_with_the_command(table, monkeypatch) -> None:
    monkeypatch.setattr(diffs, "is_tiny", lambda *_: False)
    found = compared(table, None, table.handle.current_snapshot_id)
    assert found.refusal.startswith("This needs Spark: 1 files of ")
    assert found.command.startswith("rowlake changes ns.k --end ")
    assert not table.lake.engine.has_session


@pytest.mark.parametrize(
    ("limit", "value", "told"),
    [("MAX_COMMITS", 0, "1 commits in between"), ("MAX_RECORDS", 5, "with 6 rows")],
)
def test_long_spans_and_many_rows_are_refused(table, monkeypatch, limit, value, told) -> None:
    monkeypatch.setattr(diffs, limit, value)
    assert told in compared(table, None, table.handle.current_snapshot_id).refusal


def test_slow_comparisons_are_given_up_and_only_one_runs(table, monkeypatch) -> None:
    go_on = threading.Event()

    def slow(*_: object) -> str:
        go_on.wait(60)
        return "done"

    comparing = Comparing(table.lake.engine, seconds=0.01)
    monkeypatch.setattr(comparing, "_read", slow)
    asked = (table.handle, None, table.handle.current_snapshot_id)
    assert "takes longer" in comparing.diff(*asked).refusal
    assert "Another comparison is running" in comparing.diff(*asked).refusal
    go_on.set()


def test_long_values_are_cut() -> None:
    assert cell_text("x" * 500) == "x" * 199 + "…"
    assert [cell_text(value) for value in (None, True, b"\x00\xff", 1.5)] == [
        "NULL",
        "true",
        "00ff",
        "1.5",
    ]
