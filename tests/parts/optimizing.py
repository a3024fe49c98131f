"""Streaming writers beside `optimize`, round after round; other processes import this.

By value: upserts that do not look at the table, beside appends. By position: upserts and deletes
that mark rows, of the same data files.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.parts.beside import rows

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

    from rowlake.table import Table

ROUNDS, KEYS, OLD = 12, 5, 1_000
WRITERS = 2


def stream(table: Table, kind: str) -> None:
    """Upsert the same few keys over and over, and a new one each time."""
    how = {"deletes": "equality"} if kind == "by value" else {"mode": "merge-on-read"}
    for number in range(ROUNDS):
        table.upsert(rows([number % KEYS, KEYS + number], f"round {number}"), ["id"], **how)


def thin(table: Table, kind: str) -> None:
    """Delete old rows one by one, or add some."""
    for number in range(ROUNDS):
        if kind == "by value":
            table.append(rows([OLD + 2 * ROUNDS + number], "old"))
        else:
            result = table.delete(f"id = {OLD + number}", mode="merge-on-read")
            assert result.rows_deleted == 1


def expected(kind: str) -> dict[int, str]:
    """Return what is left of the rows."""
    found = {}
    for number in range(ROUNDS):
        for one in (number % KEYS, KEYS + number):
            found[one] = f"round {number} {one}"
    last = OLD + 3 * ROUNDS if kind == "by value" else OLD + 2 * ROUNDS
    first = OLD if kind == "by value" else OLD + ROUNDS
    return found | {one: f"old {one}" for one in range(first, last)}


def work(
    number: int, start: Barrier, warehouse: str, table: str, folder: str, kind: str
) -> tuple[int, int]:
    """Write, or optimize until the writers are done; return the most files and deletes seen."""
    from rowlake.lake import connect

    with connect(warehouse) as lake:
        opened = lake.table(table)
        start.wait()
        if number == WRITERS:
            return _optimized(opened, folder)
        try:
            (stream, thin)[number](opened, kind)
        finally:
            Path(folder, str(number)).touch()
    return 0, 0


def _optimized(table: Table, folder: str) -> tuple[int, int]:
    files = deletes = 0
    while len(list(Path(folder).iterdir())) < WRITERS:
        table.optimize()
        seen = table.health()
        files, deletes = max(files, seen.data_files), max(deletes, seen.delete_files)
        time.sleep(0.2)
    return files, deletes
