"""The bench table: rows like TPC-DS store_sales, always the same for the same size.

Comes in: a number of rows. Goes out: a folder of zstd Parquet files under the cache, sorted by
ticket. Ten rows share a ticket; `ss_ticket_number` and `ss_item_sk` together are the key.
Dates grow with tickets, the other columns are random. The name of the folder holds everything
that decides the content, so a cached folder never goes stale.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEED = 20_240_607
VERSION = 1
CHUNK_ROWS = 500_000
ROWS_PER_TICKET = 10
ITEMS = 204_000
STORES = 402
FIRST_DATE = 2_450_816
DATES = 1_823
MONEY = pa.decimal128(7, 2)
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz012345", dtype=np.uint8)
UPDATED_FROM_US = 1_700_000_000_000_000

SCHEMA = pa.schema(
    [
        pa.field("ss_ticket_number", pa.int64()),
        pa.field("ss_item_sk", pa.int64()),
        pa.field("ss_sold_date_sk", pa.int32()),
        pa.field("ss_customer_sk", pa.int32()),
        pa.field("ss_store_sk", pa.int32()),
        pa.field("ss_quantity", pa.int32()),
        pa.field("ss_sales_price", MONEY),
        pa.field("ss_ext_sales_price", MONEY),
        pa.field("ss_net_paid", MONEY),
        pa.field("ss_net_profit", MONEY),
        pa.field("ss_note", pa.string()),
        pa.field("ss_updated", pa.timestamp("us", tz="UTC")),
    ]
)
COLUMNS_SQL = (
    "ss_ticket_number bigint, ss_item_sk bigint, ss_sold_date_sk int, ss_customer_sk int, "
    "ss_store_sk int, ss_quantity int, ss_sales_price decimal(7,2), "
    "ss_ext_sales_price decimal(7,2), ss_net_paid decimal(7,2), ss_net_profit decimal(7,2), "
    "ss_note string, ss_updated timestamp"
)


def store_sales(rows: int, cache: Path) -> Path:
    """Return the folder with this many rows, making it when the cache has none."""
    folder = cache / f"store_sales-v{VERSION}-{SEED}-{rows}"
    if not folder.exists():
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        for number, table in enumerate(chunks(rows)):
            path = unfinished / f"part-{number:05}.parquet"
            pq.write_table(table, path, compression="zstd", store_decimal_as_integer=True)
        unfinished.rename(folder)
    return folder


def chunks(rows: int) -> Iterator[pa.Table]:
    """Yield the rows in pieces, in ticket order."""
    for number, start in enumerate(range(0, rows, CHUNK_ROWS)):
        yield _chunk(number, start, min(CHUNK_ROWS, rows - start), rows)


def _chunk(number: int, start: int, count: int, rows: int) -> pa.Table:
    random = np.random.default_rng([SEED, number])
    position = np.arange(start, start + count, dtype=np.int64)
    ticket = position // ROWS_PER_TICKET
    quantity = random.integers(1, 101, count, dtype=np.int32)
    cents = random.integers(1, 20_000, count, dtype=np.int64)
    extended = np.minimum(cents * quantity, 9_999_999)
    columns = [
        pa.array(ticket),
        pa.array(_items(random, position)),
        pa.array((FIRST_DATE + position * DATES // rows).astype(np.int32)),
        pa.array(random.integers(1, 2_000_000, count, dtype=np.int32)),
        pa.array(random.integers(1, STORES + 1, count, dtype=np.int32)),
        pa.array(quantity),
        money(cents),
        money(extended),
        money(extended * random.integers(50, 101, count) // 100),
        money(random.integers(-9_999_999, 9_999_999, count, dtype=np.int64)),
        notes(random, count),
        pa.array(UPDATED_FROM_US + position * 1_000_000, pa.int64()).cast(SCHEMA.field(11).type),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _items(random: np.random.Generator, position: np.ndarray) -> np.ndarray:
    """Items differ inside a ticket: each of its rows draws from a slice of its own."""
    slice_size = ITEMS // ROWS_PER_TICKET
    slot = position % ROWS_PER_TICKET
    return slot * slice_size + random.integers(0, slice_size, len(position), dtype=np.int64)


def money(cents: np.ndarray) -> pa.Array:
    """Make decimals from whole cents: the 16 bytes of a decimal128 are a little-endian integer."""
    wide = np.empty((len(cents), 2), dtype=np.int64)
    wide[:, 0] = cents
    wide[:, 1] = cents >> 63
    return pa.Array.from_buffers(MONEY, len(cents), [None, pa.py_buffer(wide)])


def notes(random: np.random.Generator, count: int) -> pa.Array:
    letters = LETTERS[random.integers(0, 32, count * 16, dtype=np.uint8)]
    offsets = np.arange(0, count * 16 + 1, 16, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
    return pa.Array.from_buffers(pa.string(), count, buffers)
