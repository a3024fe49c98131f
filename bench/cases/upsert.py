"""Upsert of whole rows by key: rowlake, delta-rs's MERGE and PyIceberg's upsert.

The large form has 1 M keys, four in five of them in the table; PyIceberg, whose time grows with
keys times rows, takes part in the small one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bench.case import Case, Contestant, entrants
from bench.cases.rowlevel import player
from bench.changes import Workload
from bench.editors.base import base
from bench.staging import stage

if TYPE_CHECKING:
    from bench.lab import Lab

SYSTEMS = ("rowlake-auto", "rowlake-lazy", "delta-rs", "pyiceberg-upsert", "pyarrow-upsert")
ROUNDS = 3
KEYS = 1_000_000
SMALL_KEYS, SMALL_ROWS = 1_000, 100_000
# Of the keys, these are in the table.
OLD_SHARE = 0.8


def contestants(keys: int, most_rows: int | None, lab: Lab) -> list[Contestant]:
    """Upsert the keys, at most half as many as the table has rows."""
    rows = min(lab.options.row_level_rows, most_rows or lab.options.row_level_rows)
    workload = upsert_of(min(keys, rows // 2), lab.options.buckets)
    start = base(lab, rows)
    rounds = lab.rounds_of(ROUNDS)
    sources = [stage(lab, rows, workload, number, aligned=False) for number in range(rounds)]
    return entrants(lab.wanted(*SYSTEMS), lambda name: player(lab, name, "upsert", start, sources))


def upsert_of(keys: int, buckets: int) -> Workload:
    each = keys // buckets
    old = int(each * OLD_SHARE)
    return Workload(f"upsert_{keys}", old, each - old)


CASES = [
    Case(
        "upsert",
        "Upsert of 1 M keys (at most half of the table's rows)",
        partial(contestants, KEYS, None),
        rounds=ROUNDS,
        ours="rowlake-auto",
        with_delta=True,
    ),
    Case(
        "upsert_1k",
        "Upsert of 1 000 keys into 100 000 rows",
        partial(contestants, SMALL_KEYS, SMALL_ROWS),
        rounds=ROUNDS,
        ours="rowlake-auto",
        with_delta=True,
    ),
]
