"""Writers of one partition: by equality deletes, by position, and the conversion of the former."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.synchronize import Barrier

    from rowlake.table import Table

KEYS = 20
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
BLIND, POSITION, CONVERSION = range(3)
PROCESSES = 3
OPERATIONS = 5
# The blind writer goes on until the others are done, however long they take; but the table stays
# below the 64 data files that need no Spark.
MOST_BLIND = 25
PAUSE_SECONDS = 0.2


@dataclass
class Told:
    """What a process did: how many of its operations landed, and what its keys hold."""

    landed: int = 0
    retries: int = 0
    slowest_seconds: float = 0.0
    held: dict[int, int] = field(default_factory=dict)


def keys_of(number: int) -> range:
    """Return keys of a writer; those of the two writers alternate, so that bounds tell nothing."""
    return range(number, 2 * KEYS, 2)


def work(number: int, start: Barrier, warehouse: str, name: str, done: str) -> Told:
    """Write or convert; `done` is a folder in which processes leave a file when they are."""
    from rowlake import connect

    told = Told()
    with connect(warehouse) as lake:
        table = lake.table(name)
        start.wait()
        for _ in _turns(number, Path(done)):
            began = time.monotonic()
            if number == CONVERSION:
                table.convert_equality_deletes()
            else:
                told.retries += _upsert(table, number, told)
            told.landed += 1
            told.slowest_seconds = max(told.slowest_seconds, time.monotonic() - began)
            time.sleep(PAUSE_SECONDS)
    Path(done, str(number)).touch()
    return told


def _turns(number: int, done: Path) -> Iterator[int]:
    """Yield while the process is to go on."""
    for turn in range(MOST_BLIND if number == BLIND else OPERATIONS):
        if number == BLIND and len(list(done.iterdir())) == PROCESSES - 1:
            return
        yield turn


def _upsert(table: Table, number: int, told: Told) -> int:
    keys = keys_of(number)
    chosen = [keys[(told.landed + step) % KEYS] for step in (0, 7)]
    rows = pa.table([chosen, [told.landed] * 2], schema=SCHEMA)
    how: dict[str, Any] = {"deletes": "equality"} if number == BLIND else {"mode": "merge-on-read"}
    result = table.upsert(rows, ["id"], **how)
    told.held |= dict.fromkeys(chosen, told.landed)
    return result.retries
