"""Source rows of the row-level cases, the same in every run.

Comes in: the bench data, a workload, a round. Goes out: the source rows as Arrow. An updated row is
the table's row with new values in six columns, so that a MERGE that sets those six and an upsert of
whole rows end with the same table; inserted rows have tickets that no row had before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench import data

if TYPE_CHECKING:
    from pathlib import Path

KEYS = ("ss_ticket_number", "ss_item_sk")
SET_COLUMNS = (
    "ss_quantity",
    "ss_sales_price",
    "ss_ext_sales_price",
    "ss_net_paid",
    "ss_net_profit",
    "ss_updated",
)
# New tickets of round r start this far after the last old one.
TICKETS_PER_ROUND = 10_000_000
LATER_US = 86_400_000_000


@dataclass(frozen=True)
class Workload:
    """How many rows of which buckets a round updates, and how many it inserts into each.

    `updates` is a count per bucket where it is whole, else a share of the bucket's rows;
    `buckets` is the share of the buckets that are touched, evenly apart.
    """

    name: str
    updates: int | float
    inserts: int = 0
    buckets: float = 1.0

    def touched(self, buckets: int) -> np.ndarray:
        """Return the numbers of the buckets that the workload touches."""
        count = max(1, round(self.buckets * buckets))
        return (np.arange(count) * buckets // count).astype(np.int32)

    def updates_of(self, rows: int) -> int:
        wanted = self.updates if isinstance(self.updates, int) else round(self.updates * rows)
        return min(rows, wanted)


STREAMING = Workload("streaming", 25, 25)
MICRO_BATCH = Workload("micro_batch", 0.01, 40)
BATCH = Workload("batch", 0.5, 0, buckets=2 / 16)
NO_STATIC_PREDICATE = Workload("no_static_predicate", 0.01, 0, buckets=4 / 16)


def bucket_of(tickets: np.ndarray, buckets: int) -> np.ndarray:
    """Return the bucket of every ticket, as Iceberg's transform puts it."""
    from pyiceberg_core import transform

    return np.asarray(transform.bucket(pa.array(tickets, pa.int64()), buckets))


def source_rows(folder: Path, rows: int, buckets: int, workload: Workload, number: int) -> pa.Table:
    """Return the source of one round for the bench data in the folder, in ticket order."""
    random = np.random.default_rng([data.SEED, *workload.name.encode(), number])
    updates = updated_rows(folder, positions(rows, buckets, workload, random))
    tickets = new_tickets(rows, buckets, workload, number)
    inserts = inserted_rows(tickets, random)
    together = pa.concat_tables([updates, inserts])
    return with_new_values(together, random, number)


def positions(
    rows: int, buckets: int, workload: Workload, random: np.random.Generator
) -> np.ndarray:
    """Return the positions of the rows that are updated, sorted."""
    every = np.arange(rows, dtype=np.int64)
    of_row = bucket_of(np.arange(-(-rows // data.ROWS_PER_TICKET)), buckets).repeat(
        data.ROWS_PER_TICKET
    )[:rows]
    picked = []
    for bucket in workload.touched(buckets):
        mine = every[of_row == bucket]
        picked.append(random.choice(mine, workload.updates_of(len(mine)), replace=False))
    return np.sort(np.concatenate(picked))


def updated_rows(folder: Path, wanted: np.ndarray) -> pa.Table:
    """Return the rows at these positions of the bench data, as they are there."""
    parts, start = [], 0
    for path in sorted(folder.glob("*.parquet")):
        count = pq.read_metadata(path).num_rows
        inside = wanted[(wanted >= start) & (wanted < start + count)] - start
        if len(inside):
            parts.append(pq.read_table(path).take(pa.array(inside)))
        start += count
    return pa.concat_tables(parts) if parts else data.SCHEMA.empty_table()


def new_tickets(rows: int, buckets: int, workload: Workload, number: int) -> np.ndarray:
    """Return tickets that are new in this round, equally many in every touched bucket."""
    if not workload.inserts:
        return np.empty(0, np.int64)
    first = rows + number * TICKETS_PER_ROUND
    candidates = np.arange(first, first + workload.inserts * buckets * 4 + 4096, dtype=np.int64)
    of_ticket = bucket_of(candidates, buckets)
    found = [
        candidates[of_ticket == bucket][: workload.inserts] for bucket in workload.touched(buckets)
    ]
    return np.sort(np.concatenate(found))


def inserted_rows(tickets: np.ndarray, random: np.random.Generator) -> pa.Table:
    """Return rows with these tickets; the columns of an update are still zero."""
    count = len(tickets)
    zero = data.money(np.zeros(count, np.int64))
    columns = [
        pa.array(tickets),
        pa.array(random.integers(0, data.ITEMS, count, dtype=np.int64)),
        pa.array(np.full(count, data.FIRST_DATE + data.DATES, np.int32)),
        pa.array(random.integers(1, 2_000_000, count, dtype=np.int32)),
        pa.array(random.integers(1, data.STORES + 1, count, dtype=np.int32)),
        pa.array(np.zeros(count, np.int32)),
        *[zero] * 4,
        data.notes(random, count),
        pa.array(np.zeros(count, np.int64)).cast(data.SCHEMA.field(11).type),
    ]
    return pa.Table.from_arrays(columns, schema=data.SCHEMA)


def with_new_values(table: pa.Table, random: np.random.Generator, number: int) -> pa.Table:
    """Return the rows with new values in the columns that a MERGE sets."""
    count = table.num_rows
    quantity = random.integers(1, 101, count, dtype=np.int32)
    cents = random.integers(1, 20_000, count, dtype=np.int64)
    extended = np.minimum(cents * quantity, 9_999_999)
    updated = data.UPDATED_FROM_US + (number + 1) * LATER_US + np.arange(count, dtype=np.int64)
    made = {
        "ss_quantity": pa.array(quantity),
        "ss_sales_price": data.money(cents),
        "ss_ext_sales_price": data.money(extended),
        "ss_net_paid": data.money(extended * random.integers(50, 101, count) // 100),
        "ss_net_profit": data.money(random.integers(-9_999_999, 9_999_999, count, dtype=np.int64)),
        "ss_updated": pa.array(updated).cast(data.SCHEMA.field(11).type),
    }
    for name in SET_COLUMNS:
        index = table.schema.get_field_index(name)
        table = table.set_column(index, data.SCHEMA.field(name), made[name])
    return table
