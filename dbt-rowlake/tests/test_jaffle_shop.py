"""The example project: built, changed, built again; the rows are those of the seeds."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path

import pytest
from dbt.cli.main import dbtRunner

import rowlake

PROJECT = Path(__file__).resolve().parent.parent / "jaffle_shop"


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop") / "jaffle_shop"
    shutil.copytree(PROJECT, folder)
    return folder


def dbt(shop: Path, *words: str):
    found = dbtRunner().invoke([*words, "--project-dir", str(shop), "--profiles-dir", str(shop)])
    assert found.success, (
        words,
        found.exception,
        [(one.node.name, one.message) for one in found.result or []],
    )
    return found


def rows(lake: rowlake.Lake, name: str, *columns: str) -> list[tuple]:
    found = lake.table(f"jaffle_shop.{name}").arrow().select(list(columns)).to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_the_example_project_is_built_and_follows_its_seeds(shop, monkeypatch):
    monkeypatch.setenv("JAFFLE_SHOP_WAREHOUSE", str(shop / "lakehouse"))
    dbt(shop, "build")
    with rowlake.connect(str(shop / "lakehouse")) as lake:
        assert rows(
            lake, "customers", "first_name", "last_name", "number_of_orders", "lifetime_value"
        ) == [
            ("Ada", "Moran", 2, Decimal("11.00")),
            ("Björn", "O'Neil", 1, Decimal("28.00")),
            ("Chiyo", "Tanaka", 2, Decimal("37.00")),
            ("Dara", None, 0, Decimal("0.00")),
        ]
        assert (
            lake.table("jaffle_shop.customers").schema.find_field("customer_id").doc
            == "The key of a customer."
        )
        first = lake.table("jaffle_shop.orders").snapshots()[-1].snapshot_id

    seed = shop / "seeds" / "raw_orders.csv"
    seed.write_text(
        seed.read_text().replace(
            "5,3,2026-03-01,placed", "5,3,2026-03-01,completed\n6,2,2026-03-09,placed"
        )
    )
    dbt(shop, "build")
    with rowlake.connect(str(shop / "lakehouse")) as lake:
        orders = lake.table("jaffle_shop.orders")
        assert rows(lake, "orders", "order_id", "status")[-2:] == [(5, "completed"), (6, "placed")]
        assert orders.history().to_pylist()[-1]["statement"] == "MERGE"
        assert first in [one.snapshot_id for one in orders.snapshots()]
        kept = rows(lake, "order_states", "order_id", "status")
        assert [one for one in kept if one[0] == 5] == [(5, "completed"), (5, "placed")]
    found = dbt(shop, "docs", "generate")
    names = {node.metadata.name for node in found.result.nodes.values()}
    assert {"customers", "orders", "raw_orders"} <= names
