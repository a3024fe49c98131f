"""The counters behind docs/scaling.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools import scaling

from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from pathlib import Path


def counted(requests: float, grown: float) -> dict[str, float]:
    names = ("writes", "deletes", "read_bytes", "written_bytes", "tasks", "seconds")
    return {"reads": requests, "grown_bytes": grown, **dict.fromkeys(names, 0.0)}


def test_a_line_holds_the_sizes_of_one_operation() -> None:
    lines = scaling.rows_of({"plan": {10: counted(3, 5e5), 1_000: counted(4, 2e7)}})
    assert lines[0] == "Each cell: at 10 / 1,000 files."
    assert lines[-1] == "| plan | 3 / 4 | 0.00 / 0.00 | 0.00 / 0.00 | 0 / 0 | 0.50 / 20 |"


def test_only_what_stands_between_the_marks_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{scaling.BEGIN}\nold\n{scaling.END}\nafter\n")
    scaling.write_page(["new"], page)
    assert page.read_text() == f"before\n{scaling.BEGIN}\nnew\n{scaling.END}\nafter\n"


def test_a_call_that_calls_another_is_one_request(tmp_path: Path) -> None:
    storage, place = Storage({}), str(tmp_path / "file")
    with scaling.counting() as found:
        storage.write(place, b"four")
        assert storage.read(place) == b"four"
        storage.delete([place])
    assert found == {
        "writes": 1,
        "reads": 1,
        "deletes": 1,
        "written_bytes": 4,
        "read_bytes": 4,
    }


def test_every_operation_runs_on_a_small_table(tmp_path: Path) -> None:
    scaling.build(tmp_path, 20)
    found = scaling.measure_here(str(tmp_path), "delete one row")
    assert found["tasks"] == 1
    assert found["writes"] >= 4
