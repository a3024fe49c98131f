"""A writer and a compactor beside each other; in a module that other processes can import."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

KEYS = 2_000
BATCH = 40


def soak(
    number: int, start: Barrier, warehouse: str, table: str, seconds: float, pause: float
) -> dict[str, Any]:
    """Write (all but the last process) or compact (the last one) until the time is over.

    Writers have keys of their own: what each of them wrote last is what the table must hold.
    """
    import rowlake

    with rowlake.connect(warehouse) as lake:
        mine = lake.table(table)
        work = _compact if number == start.parties - 1 else _write
        mine.upsert([], keys=["id"])  # what is loaded at the first use is loaded now
        start.wait()
        return work(number, mine, time.monotonic() + seconds, pause)


def _write(number: int, table: Any, until: float, pause: float) -> dict[str, Any]:
    """Upsert and delete rows of one's own; return what they are in the end."""
    chance = random.Random(number)
    held: dict[int, int] = {}
    first, rounds, retries = number * KEYS, 0, 0
    while time.monotonic() < until:
        began = time.monotonic()
        rounds += 1
        keys = chance.sample(range(first, first + KEYS), BATCH)
        if rounds % 5 == 4:
            low = chance.randrange(first, first + KEYS)
            result = table.delete(f"id >= {low} AND id < {low + 20} AND id < {first + KEYS}")
            held = {key: value for key, value in held.items() if not low <= key < low + 20}
        else:
            rows = [{"id": key, "v": rounds} for key in keys]
            result = table.upsert(rows, keys=["id"])
            held |= dict.fromkeys(keys, rounds)
        retries += result.retries
        time.sleep(max(0.0, pause - (time.monotonic() - began)))
    return {"held": held, "rounds": rounds, "retries": retries}


def _compact(_: int, table: Any, until: float, pause: float) -> dict[str, Any]:
    """Compact again and again; return how many files were rewritten, and how many given up."""
    rewritten = given_up = runs = 0
    while time.monotonic() < until:
        report = table.rewrite_data_files(
            options={"min-input-files": "3", "delete-file-threshold": "1"}
        )
        runs += 1
        rewritten += report.rewritten_data_files_count
        given_up += report.given_up_files_count
        time.sleep(pause / 4)
    return {"runs": runs, "rewritten": rewritten, "given_up": given_up}
