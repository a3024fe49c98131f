"""The page that maps the specification's rules to tests: markers, order, up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tools import spec_map

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
import pytest

@pytest.mark.spec("{marker}")
@pytest.mark.parametrize("value", [1, 2])
def test_{name}(value): pass
"""


def write_test(folder: Path, name: str, marker: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"test_{name}.py").write_text(MODULE.format(marker=marker, name=name))


def test_the_page_is_up_to_date() -> None:
    page = spec_map.page_of(spec_map.rules_of(spec_map.ROOT / "tests"))
    assert spec_map.PAGE.read_text("utf-8") == page, "run `make docs`"


def test_sections_follow_the_specification_and_rules_are_sorted(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    write_test(tests / "b", "later", "Scan Planning: deletes stay in their partition")
    write_test(tests / "a", "second", "Scan Planning: deletes stay in their partition")
    write_test(tests / "a", "other", "Scan Planning: a vector wins")
    write_test(tests / "c", "first", "Column Projection: by field id")
    page = spec_map.page_of(spec_map.rules_of(tests))
    assert page.removeprefix(spec_map.HEADER).splitlines() == [
        "",
        "## Column Projection",
        "",
        "| rule | tests |",
        "|---|---|",
        "| by field id | [`test_first`](../tests/c/test_first.py) |",
        "",
        "## Scan Planning",
        "",
        "| rule | tests |",
        "|---|---|",
        "| a vector wins | [`test_other`](../tests/a/test_other.py) |",
        "| deletes stay in their partition | [`test_second`](../tests/a/test_second.py)"
        "<br>[`test_later`](../tests/b/test_later.py) |",
    ]


@pytest.mark.parametrize("marker", ["Column Projection", "Colum Projection: by field id"])
def test_markers_without_a_known_section_are_refused(tmp_path: Path, marker: str) -> None:
    write_test(tmp_path / "tests", "odd", marker)
    with pytest.raises(ValueError, match=f'tests/test_odd.py: spec marker "{marker}"'):
        spec_map.rules_of(tmp_path / "tests")
