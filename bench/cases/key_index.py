"""Small upserts and look-ups by key in tables of 1 M, 10 M and 100 M rows, with a key index.

Keys are random numbers, so that neither bounds nor compression help. rowlake runs alone, since no
peer has such an index; `scan` is the same table without one.
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bench.case import Case, Contestant, Step, entrants
from rowlake import connect
from rowlake.model.predicate import Leaf, Op
from rowlake.storage.tally import counting

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from bench.lab import Lab
    from rowlake import Table

KEYS = 800
FILE_ROWS = 8_000_000
SIZES = {"1M": 1_000_000, "10M": 10_000_000}
LARGE = {"1M": 1_000_000, "100M": 100_000_000}
FINISHED = "finished"


def contestants(sizes: dict[str, int], lab: Lab) -> list[Contestant]:
    """Take tables of these sizes, and the smallest one without an index."""
    smallest = next(iter(sizes))
    makers = {f"rowlake-{name}": partial(_player, lab, name, rows) for name, rows in sizes.items()}
    makers["scan"] = partial(_player, lab, smallest, sizes[smallest], index=False)
    names = [name for name in makers if lab.wanted("rowlake")]
    return entrants(names, lambda name: makers[name](name))


def _player(lab: Lab, size: str, rows: int, name: str, *, index: bool = True) -> Contestant:
    folder = lab.cache / "key_index" / f"{size}{'' if index else '-scan'}"
    table = _table(folder)
    if table.handle.current_snapshot_id is None:
        _fill(table, rows, index=index)
        (folder / FINISHED).touch()
    read: dict[str, float] = {}
    randoms = np.random.default_rng(7)

    def upsert() -> int:
        found = randoms.integers(0, rows, KEYS)
        result = table.upsert(_rows(keys_of(found), randoms), keys=["id"])
        read["bytes_read"] = result.bytes_read
        return int(result.rows_inserted)

    def look_up() -> int:
        wanted = int(keys_of(randoms.integers(0, rows, 1))[0])
        with counting() as counted:
            found = table.arrow(where=Leaf(("id",), Op.EQ, (wanted,))).num_rows
        read["bytes_read"] = counted.size_in_bytes
        return int(found)

    steps = (
        Step("upsert", upsert, int, facts=lambda: dict(read)),
        Step("look-up", look_up, int, facts=lambda: dict(read)),
    )
    return Contestant(name, steps)


def _table(folder: Path) -> Table:
    """Return the table of a folder; one that was not finished is made again."""
    if folder.exists() and not (folder / FINISHED).exists():
        shutil.rmtree(folder)
    lake = connect(str(folder))
    if lake.exists("bench.keys"):
        return lake.table("bench.keys")
    lake.create_namespace("bench", if_not_exists=True)
    schema = _rows(keys_of(np.arange(1)), np.random.default_rng(0)).schema
    return lake.create_table("bench.keys", schema, properties={"format-version": "3"})


def _fill(table: Table, rows: int, *, index: bool) -> None:
    if index:
        table.create_index("id")
    for first in range(0, rows, FILE_ROWS):
        numbers = np.arange(first, min(first + FILE_ROWS, rows))
        table.append(_rows(keys_of(numbers), np.random.default_rng(first)))


def keys_of(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Return the keys of some rows: their numbers, mixed by SplitMix64, in 62 bits."""
    mixed = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(2)).astype(np.int64)


def _rows(keys: NDArray[np.int64], randoms: np.random.Generator) -> pa.Table:
    count = len(keys)
    return pa.table(
        {
            "id": keys,
            "amount": randoms.integers(0, 1 << 40, count),
            "store": randoms.integers(0, 100, count),
            "note": pa.array(randoms.integers(0, 1000, count)).cast(pa.string()),
        }
    )


CASES = [
    Case(
        "key_index",
        "Upsert of 800 keys and look-up of one in 1 M and 10 M rows, by a key index",
        partial(contestants, SIZES),
        ours="rowlake-1M",
    ),
    Case(
        "key_index_100m",
        "Upsert of 800 keys and look-up of one in 1 M and 100 M rows, by a key index",
        partial(contestants, LARGE),
        ours="rowlake-1M",
        only_full=True,
    ),
]
