"""Every statement beside everything that can land meanwhile: a sample here, all in `make matrix`.

Each day takes the next of `PARTS` parts; `ROWLAKE_MATRIX_PART` names one (from 0).
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from tests.matrix import page, record
from tests.matrix.cells import all_cells, is_acceptable, verdict_of
from tests.matrix.tables import KINDS, Scene

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTS = 64
TODAY = int(time.time() // 86_400)
PART = int(os.environ.get("ROWLAKE_MATRIX_PART", TODAY)) % PARTS


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Scene]]:
    made = {one: Scene.made(fresh(tmp_path_factory, one), one) for one in KINDS}
    yield made
    for scene in made.values():
        scene.lake.close()


def fresh(factory: pytest.TempPathFactory, kind: str) -> Path:
    return factory.mktemp(kind)


def test_a_sample_of_cells_ends_as_recorded_with_the_rows_of_a_serial_order(scenes) -> None:
    recorded = record.load()
    sample = [cell for cell in all_cells() if record.part_of(cell, PARTS) == PART]
    assert sample
    found = {cell: verdict_of(cell, scenes[cell.kind]) for cell in sample}
    changed = [
        f"{cell}: {verdict}, not {recorded.get(cell)}"
        for cell, verdict in found.items()
        if verdict != recorded.get(cell)
    ]
    assert changed == [], "run `make matrix` if that is intended"


def test_every_cell_is_recorded_and_ends_by_landing_or_by_a_conflict() -> None:
    recorded = record.load()
    assert [cell for cell in all_cells() if cell not in recorded] == []
    assert [cell for cell, verdict in recorded.items() if not is_acceptable(verdict)] == []


def test_the_committed_page_is_up_to_date() -> None:
    assert page.PAGE.read_text("utf-8") == page.page_of(record.load())
