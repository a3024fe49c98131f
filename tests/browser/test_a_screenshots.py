"""The pictures of the documentation; ROWLAKE_SCREENSHOTS is where to keep them.

Before the other tests by its name: they change the lake.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

LARGEST = 200_000
# Where the lake is and who made it differ from machine to machine.
TIDY = """() => {
  document.querySelector(".place").textContent = "./lakehouse";
  for (const name of document.querySelectorAll(".small b")) name.textContent = "ada";
}"""
HEIGHTS = {"ui-files-dark": 1130, "ui-changes": 900, "ui-lake": 720}
SHOTS = {
    "ui-lake": ("/", {}),
    "ui-table": ("/table?name=shop.orders", {}),
    "ui-files-dark": ("/table/files?name=events.clicks", {"dark": True}),
    "ui-changes": ("/table/changes?name=shop.customers", {}),
    "ui-narrow": ("/table?name=shop.orders", {"narrow": True, "dark": True}),
}


@pytest.mark.parametrize("name", SHOTS)
def test_the_pictures_are_made(visit, tmp_path, name: str) -> None:
    path, how = SHOTS[name]
    made = visit(**how)
    made.open(path)
    if name == "ui-changes":
        made.page.get_by_role("button", name="Compare").click()
    made.page.evaluate(TIDY)
    if name in HEIGHTS:
        made.page.set_viewport_size({"width": 1280, "height": HEIGHTS[name]})
    picture = made.page.screenshot()
    assert 10_000 < len(picture) < LARGEST
    kept = os.environ.get("ROWLAKE_SCREENSHOTS")
    (Path(kept) if kept else tmp_path).joinpath(f"{name}.png").write_bytes(picture)
