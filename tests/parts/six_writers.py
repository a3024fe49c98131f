"""Six writers and the upkeep of their table, a process each; other processes import this.

All rows are in one table: accounts that money moves between, counters, and keys that two writers
both insert. Each writer tells what it did, so that the rows can be checked afterwards.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.synchronize import Barrier

    from rowlake.table import Table

ACCOUNTS, COUNTERS = range(8), range(100, 103)
FIRST_KEY = 1000
BALANCE = 1000
SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("p", pa.int32()), ("v", pa.int64())]
)
PAUSE_SECONDS = 0.1
ORPHAN_AGE_SECONDS = 600


@dataclass
class Told:
    """What a process did: `moved` is what it added to each row, `landed` how many commits."""

    what: str
    landed: int = 0
    runs: int = 0
    slowest_seconds: float = 0.0
    moved: Counter[int] = field(default_factory=Counter)


def start_rows() -> pa.Table:
    """Return what the table holds at first."""
    rows = [(key, 0, BALANCE) for key in ACCOUNTS] + [(key, 1, 0) for key in COUNTERS]
    return pa.table(list(map(list, zip(*rows, strict=True))), schema=SCHEMA)


# ---------------------------------------------------------------------- writers


def transfer(table: Table, chance: random.Random, told: Told) -> int:
    """Move money from one account to another by a MERGE."""
    from tests.parts.evaluated import change_values

    giver, taker = chance.sample(ACCOUNTS, 2)
    amount = chance.randrange(1, 50)
    change = {giver: -amount, taker: amount}
    result, runs = change_values(table, "merge", [giver, taker], lambda key, v: v + change[key])
    assert result.rows_updated == 2, result
    told.moved.update(change)
    return runs


def count(table: Table, chance: random.Random, told: Told) -> int:
    """Add one to a counter."""
    from tests.parts.evaluated import change_values

    key = chance.choice(COUNTERS)
    result, runs = change_values(table, "update", [key], lambda _, v: v + 1)
    assert result.rows_updated == 1, result
    told.moved[key] += 1
    return runs


def insert_by_merge(table: Table, _: random.Random, told: Told) -> int:
    """Insert the next keys, where nobody has."""
    from tests.parts.evaluated import insert_missing

    result = insert_missing(table, _keys(told.landed))
    told.moved["inserted"] += result.rows_inserted  # type: ignore[index]
    return result.retries + 1


def insert_by_upsert(table: Table, _: random.Random, told: Told) -> int:
    """Upsert the next keys, in the same order."""
    result = table.upsert(_keys(told.landed), ["id"])
    told.moved["inserted"] += result.rows_inserted  # type: ignore[index]
    return result.retries + 1


def _keys(number: int) -> pa.Table:
    ids = range(FIRST_KEY + 2 * number, FIRST_KEY + 2 * number + 2)
    return pa.table([list(ids), [2, 2], [0, 0]], schema=SCHEMA)


WRITERS: tuple[Callable[[Table, random.Random, Told], int], ...] = (
    transfer,
    transfer,
    count,
    count,
    insert_by_merge,
    insert_by_upsert,
)
PROCESSES = len(WRITERS) + 1


def work(
    number: int, start: Barrier, warehouse: str, catalog: Any, name: str, seconds: float
) -> Told:
    """Write, or keep the table in order, for so many seconds."""
    from rowlake import connect

    with connect(warehouse, catalog) as lake:
        table = lake.table(name)
        start.wait()
        until = time.monotonic() + seconds
        if number == len(WRITERS):
            return upkeep(table, until)
        act, chance = WRITERS[number], random.Random(number)
        told = Told(act.__name__)
        while time.monotonic() < until:
            began = time.monotonic()
            told.runs += act(table, chance, told)
            told.landed += 1
            told.slowest_seconds = max(told.slowest_seconds, time.monotonic() - began)
            time.sleep(PAUSE_SECONDS)
        return told


# ---------------------------------------------------------------------- upkeep


def compact(table: Table, _: int) -> None:
    table.rewrite_data_files(options={"min-input-files": "2", "delete-file-threshold": "1"})


def expire(table: Table, _: int) -> None:
    """Leave nothing but the head: whoever reads an older snapshot loses its files."""
    table.expire_snapshots(older_than=time.time() * 1000 + 60_000, retain_last=1)


def manifests(table: Table, _: int) -> None:
    table.rewrite_manifests()


def orphans(table: Table, number: int) -> None:
    """Remove an old file that nobody knows; what is young is not touched."""
    planted = Path(table.location.removeprefix("file://"), "data", f"orphan-{number}.parquet")
    planted.write_bytes(b"nothing")
    long_ago = time.time() - 2 * ORPHAN_AGE_SECONDS
    os.utime(planted, (long_ago, long_ago))
    older_than = (time.time() - ORPHAN_AGE_SECONDS) * 1000
    report = table.remove_orphan_files(older_than=older_than, dry_run=False, force=True)
    assert not planted.exists(), report


def add_column(table: Table, number: int) -> None:
    from rowlake.verbs.alter import change_schema

    if number < 100:  # each costs every reader, and a soak has thousands of rounds
        change_schema(table.handle, lambda builder: builder.add_column(f"c{number}", "string"))


def vacuum(table: Table, number: int) -> None:
    """Remove an old file that the log does not name, and what was removed ten minutes ago.

    No statement takes that long: what is needed by one that runs is younger.
    """
    planted = Path(table.location.removeprefix("file://"), f"orphan-{number}.parquet")
    planted.write_bytes(b"nothing")
    long_ago = time.time() - 2 * ORPHAN_AGE_SECONDS
    os.utime(planted, (long_ago, long_ago))
    report = table.vacuum(
        ORPHAN_AGE_SECONDS / 3600, enforce_retention_duration=False, dry_run=False
    )
    assert not planted.exists(), report


# Compacted often: beyond 64 data files each process would start a Spark of its own.
STEPS = (compact, expire, compact, manifests, compact, orphans, compact, add_column)
DELTA_STEPS = (compact, vacuum, compact, add_column)


def upkeep(table: Table, until: float) -> Told:
    """Take the steps in turn, and read the table after each: the money is always all there."""
    told = Told("upkeep")
    steps = STEPS if table.handle.can.snapshot_expiry else DELTA_STEPS
    while time.monotonic() < until:
        began = time.monotonic()
        steps[told.landed % len(steps)](table, told.landed)
        told.landed += 1
        told.runs += 1
        found = table.arrow(["id", "v"]).to_pylist()
        held = sum(row["v"] for row in found if row["id"] in ACCOUNTS)
        assert held == BALANCE * len(ACCOUNTS), f"{held} in all accounts"
        told.slowest_seconds = max(told.slowest_seconds, time.monotonic() - began)
        time.sleep(PAUSE_SECONDS)
    return told
