"""Two tables to change together, and what is looked at afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake import connect
from rowlake.model.predicate import Leaf, Op
from tests.lakes import SALES, sales
from tests.parts.failing import stray_files

if TYPE_CHECKING:
    from pathlib import Path

    from rowlake.lake import Lake

ONE, TWO = "shop.one", "shop.two"


def of_store(store: int) -> Leaf:
    return Leaf(("store",), Op.EQ, (store,))


def opened(folder: Path, catalog: str | None, version: str) -> Lake:
    """Return a lake with two tables of eight rows each."""
    lake = connect(str(folder), catalog)
    lake.create_namespace("shop")
    properties = {"format-version": version, "commit.retry.min-wait-ms": "1"}
    for name in (ONE, TWO):
        lake.create_table(name, SALES, properties=properties).append(sales(8))
    return lake


def ids(table: Any, **at: Any) -> list[int]:
    return sorted(table.arrow(["id"], **at)["id"].to_pylist())


def heads(lake: Lake) -> list[int | None]:
    return [lake.table(name).handle.metadata.current_snapshot_id for name in (ONE, TWO)]


def strays(folder: Path, catalog: str | None = None) -> set[str]:
    return stray_files(folder, catalog, ONE) | stray_files(folder, catalog, TWO)
