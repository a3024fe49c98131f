"""A lake for looking at: tables of both formats, in good and in bad health, with hostile names."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyiceberg.types import StringType

from rowlake import connect
from rowlake.model.partition import OrderBy
from tests.metadata_files import add_files

if TYPE_CHECKING:
    from pathlib import Path

    from rowlake.lake import Lake

HOSTILE = ("shop", "<img src=x onerror=alert('x')>")
FIRST_DAY = datetime.date(2026, 1, 1)
MB = 1_000_000


def sample_lake(folder: Path) -> Lake:
    """Return a new lake below a folder; no Spark is needed to make it."""
    lake = connect(str(folder))
    lake.create_namespace("shop")
    lake.create_namespace("events")
    _orders(lake)
    _customers(lake)
    _clicks(lake)
    _delta(lake)
    _hostile(lake)
    lake.create_table("shop.returns", "order_id BIGINT, reason STRING", partition_by="order_id")
    return lake


def orders(count: int, first: int, seed: int) -> pa.Table:
    """Return some orders."""
    draw = np.random.default_rng(seed)
    days = draw.integers(0, 90, count)
    return pa.table(
        {
            "order_id": pa.array(range(first, first + count), pa.int64()),
            "customer_id": pa.array(draw.integers(1, 500, count), pa.int64()),
            "status": draw.choice(["new", "paid", "shipped", "returned"], count).tolist(),
            "ordered_on": pa.array([FIRST_DAY + datetime.timedelta(int(day)) for day in days]),
            "amount": pa.array(draw.integers(100, 90_000, count) / 100.0, pa.float64()),
        }
    )


def _orders(lake: Lake) -> None:
    table = lake.create_table(
        "shop.orders",
        "order_id BIGINT NOT NULL, customer_id BIGINT, status STRING, ordered_on DATE, "
        "amount DOUBLE",
        partition_by="months(ordered_on)",
        sort_by=[OrderBy(("order_id",))],
        properties={"write.merge.mode": "merge-on-read", "owner": "shop team"},
    )
    for batch in range(8):
        table.append(orders(400, batch * 400, batch))
    table.delete("status = 'returned' AND ordered_on < DATE'2026-02-01'", mode="merge-on-read")
    table.upsert(orders(60, 100, 99), keys=["order_id"])
    table.create_tag("q1-closing")
    table.append(orders(250, 9_000, 42))
    table.delete("order_id BETWEEN 40 AND 75", mode="merge-on-read")


def _customers(lake: Lake) -> None:
    table = lake.create_table("shop.customers", "id BIGINT NOT NULL, name STRING, city STRING")
    with table.to_pyiceberg().update_schema() as schema:
        schema.set_identifier_fields("id")
    cities = ["Delft", "Ghent", "Basel", "Turku"]
    rows = [{"id": i, "name": f"Customer {i}", "city": cities[i % 4]} for i in range(500)]
    table.append(rows)
    with table.to_pyiceberg().update_schema() as schema:
        schema.add_column("tier", StringType(), "gold, silver or none")
    with table.to_pyiceberg().update_schema() as schema:
        schema.rename_column("city", "town")
    changed = [
        {"id": i, "name": f"Customer {i}", "town": "Delft", "tier": "gold"} for i in range(0, 30, 3)
    ]
    table.upsert([*changed, {"id": 900, "name": "Ada", "town": "Turku", "tier": "silver"}])


def _clicks(lake: Lake) -> None:
    """Add a table that exists only as metadata: 12,000 files in skewed partitions."""
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("site", pa.int32())])
    table = lake.create_table("events.clicks", schema, partition_by=["site"])
    draw = np.random.default_rng(3)
    for batch in range(6):
        sites = np.minimum(draw.geometric(0.12, 2_000) - 1, 39)
        sizes = (draw.lognormal(2.2, 1.3, 2_000) * MB).astype(np.int64) + 20_000
        lows = np.sort(draw.integers(0, 900_000, 2_000)) + batch * 90_000
        add_files(table, sizes.tolist(), stores=sites, lows=lows, width=9_000, rows=60_000)


def _delta(lake: Lake) -> None:
    table = lake.create_table(
        "events.sessions",
        "id BIGINT, started DATE, seconds INT",
        partition_by="started",
        properties={"delta.enableDeletionVectors": "true"},
        format="delta",
    )
    for day in range(5):
        rows = [
            {"id": day * 100 + i, "started": FIRST_DAY + datetime.timedelta(day), "seconds": i * 3}
            for i in range(100)
        ]
        table.append(rows)
    table.delete("id BETWEEN 110 AND 129 AND started = DATE'2026-01-02'")


def _hostile(lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ('"><img src=x onerror=alert(1)>', pa.string())])
    table = lake.create_table(HOSTILE, schema, properties={"note": "<b>&amp;</b> '\"`"})
    table.append(
        pa.table({"id": [1, 2], schema.names[1]: ["<script>alert(1)</script>", "\u202eabc"]})
    )
