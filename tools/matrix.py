"""Run the matrix of statements and what lands meanwhile; record it and write docs/concurrency.md.

Comes in: which cells to run (`--part 2/8`, `--only TEXT`; all without them, some 20 minutes), or
`--page` to write the page from what is recorded. Goes out: `tests/matrix/verdicts.json`, the page,
and exit code 1 where rows were wrong or a statement failed with anything but a conflict.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.matrix import page, record  # noqa: E402
from tests.matrix.cells import (  # noqa: E402
    Cell,
    all_cells,
    is_acceptable,
    verdict_of,
)
from tests.matrix.tables import KINDS, Scene  # noqa: E402


def chosen(part: str, only: str) -> list[Cell]:
    """Return the cells of a part like `2/8`, counted from 1, whose names hold a text."""
    number, _, parts = part.partition("/")
    return [
        cell
        for cell in all_cells()
        if record.part_of(cell, int(parts)) == int(number) - 1
        and only in f"{cell.statement} beside {cell.landing}, {cell.variant}"
    ]


def run(cells: list[Cell]) -> int:
    """Run cells and record their verdicts; return how many are wrong."""
    found: record.Verdicts = {}
    wrong = []
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rowlake-matrix-") as folder:
        scenes = {one: Scene.made(Path(folder, one), one) for one in KINDS}
        for cell in cells:
            try:
                found[cell] = verdict_of(cell, scenes[cell.kind])
            except Exception as error:  # noqa: BLE001, PERF203  (told at the end)
                wrong.append(f"{cell}: {type(error).__name__}: {error}")
        for scene in scenes.values():
            scene.lake.close()
    wrong += [f"{cell}: {one}" for cell, one in found.items() if not is_acceptable(one)]
    record.save({**record.load(), **found})
    print(f"{len(found)} cells in {time.monotonic() - started:.0f} s, {len(wrong)} wrong")
    print("\n".join(wrong))
    return len(wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="1/1", help="K/N: one of N parts")
    parser.add_argument("--only", default="", help='like "MERGE beside rollback, written v3"')
    parser.add_argument("--page", action="store_true", help="only write the page")
    given = parser.parse_args()
    wrong = 0 if given.page else run(chosen(given.part, given.only))
    page.PAGE.write_text(page.page_of(record.load()), "utf-8")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
