"""The pages of docs/reference say what the code says."""

from __future__ import annotations

import pytest
from tools.reference_pages import FOLDER, pages

PAGES = pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_up_to_date(name):
    assert (FOLDER / name).read_text("utf-8").rstrip("\n") == PAGES[name].rstrip("\n"), (
        "run `make docs`"
    )
