"""Writers of one partition: by equality deletes, by position, and the conversion of the former."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

    from rowlake.table import Table

KEYS = 20
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
BLIND, POSITION, CONVERSION = range(3)
PROCESSES = 3
ENOUGH = 3  # operations of those who could starve
# Few enough commits that the table stays below the 64 data files that need no Spark.
MOST_BLIND = 55
PAUSE_SECONDS = 0.2


@dataclass
class Told:
    """What a process did: how many of its operations landed, and what its keys hold.

    `beside`: how many of them landed while the blind writer was at work.
    """

    landed: int = 0
    beside: int = 0
    retries: int = 0
    slowest_seconds: float = 0.0
    held: dict[int, int] = field(default_factory=dict)


def keys_of(number: int) -> range:
    """Return keys of a writer; those of the two writers alternate, so that bounds tell nothing."""
    return range(number, 2 * KEYS, 2)


def work(number: int, start: Barrier, warehouse: str, name: str, folder: str) -> Told:
    """Write or convert; the blind writer goes on until the others have done enough.

    Who is done leaves a file in `folder`. How quick anybody is does not matter: the blind writer
    also ends after so many commits that the others have starved.
    """
    from rowlake import connect

    told, done = Told(), [Path(folder, str(one)) for one in range(PROCESSES)]
    with connect(warehouse) as lake:
        table = lake.table(name)
        start.wait()
        while not _is_over(number, told, done):
            began = time.monotonic()
            if number == CONVERSION:
                table.convert_equality_deletes()
            else:
                told.retries += _upsert(table, number, told)
            told.landed += 1
            told.beside += not done[BLIND].exists()
            told.slowest_seconds = max(told.slowest_seconds, time.monotonic() - began)
            time.sleep(PAUSE_SECONDS)
    done[number].touch()
    return told


def _is_over(number: int, told: Told, done: list[Path]) -> bool:
    if number != BLIND:
        return told.landed >= ENOUGH
    return told.landed >= MOST_BLIND or (done[POSITION].exists() and done[CONVERSION].exists())


def _upsert(table: Table, number: int, told: Told) -> int:
    keys = keys_of(number)
    chosen = [keys[(told.landed + step) % KEYS] for step in (0, 7)]
    rows = pa.table([chosen, [told.landed] * 2], schema=SCHEMA)
    how: dict[str, Any] = {"deletes": "equality"} if number == BLIND else {"mode": "merge-on-read"}
    result = table.upsert(rows, ["id"], **how)
    told.held |= dict.fromkeys(chosen, told.landed)
    return result.retries
