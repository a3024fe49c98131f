"""The verdicts of all cells, kept in `verdicts.json`: what the page shows and the test expects.

`tools/matrix.py` fills it. Variants of a statement and a landing with the same verdict are kept
together; a verdict of all of them is kept alone.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from tests.matrix.cells import all_cells

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.matrix.cells import Cell

FILE = Path(__file__).with_name("verdicts.json")
Verdicts = dict["Cell", str]


def part_of(cell: Cell, parts: int) -> int:
    """Return which of so many parts a cell is in; neighbours are in different ones."""
    return int(hashlib.md5(repr(cell).encode()).hexdigest(), 16) % parts


def load() -> Verdicts:
    """Return the recorded verdicts; cells that were never run are missing."""
    held = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    found = {}
    for cell in all_cells():
        kept = held.get(cell.statement, {}).get(cell.landing, {})
        if isinstance(kept, str):
            found[cell] = kept
            continue
        for verdict, variants in kept.items():
            if cell.variant in variants:
                found[cell] = verdict
    return found


def save(verdicts: Mapping[Cell, str]) -> None:
    """Record verdicts, in the order of the cells."""
    held: dict[str, dict[str, dict[str, list[str]]]] = {}
    complete: dict[tuple[str, str], bool] = {}
    for cell in all_cells():
        pair = (cell.statement, cell.landing)
        complete[pair] = complete.get(pair, True) and cell in verdicts
        if cell in verdicts:
            by_verdict = held.setdefault(cell.statement, {}).setdefault(cell.landing, {})
            by_verdict.setdefault(verdicts[cell], []).append(cell.variant)
    short = {
        statement: {
            landing: next(iter(found))
            if len(found) == 1 and complete[statement, landing]
            else found
            for landing, found in by_landing.items()
        }
        for statement, by_landing in held.items()
    }
    FILE.write_text(json.dumps(short, indent=1, ensure_ascii=False) + "\n", "utf-8")
