"""The operations that fault tests run, each on a small partitioned table with two snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake import Lake, connect
from rowlake.model.metadata_change import TableDefinition
from rowlake.model.predicate import Leaf, Op
from tests.lakes import SALES, sales

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAME = "shop.sales"
NEW_LAYOUT = TableDefinition(pa.schema([("id", pa.int64()), ("more", pa.string())]))
NEW_ROWS = pa.table({"id": pa.array([7, 8]), "more": pa.array(["a", None])})

OPERATIONS: dict[str, Callable[[Lake], Any]] = {
    "append": lambda lake: lake.table(NAME).append(sales(8, 100)),
    "append to a branch": lambda lake: lake.table(NAME).append(sales(4, 100), branch="audit"),
    "append, staged": lambda lake: lake.table(NAME).append(
        sales(4, 100), stage_only=True, properties={"wap.id": "w1"}
    ),
    "overwrite": lambda lake: lake.table(NAME).overwrite(sales(4, 100)),
    "overwrite by filter": lambda lake: lake.table(NAME).overwrite(
        sales(4, 100), where=Leaf(("store",), Op.EQ, (1,)), isolation="serializable"
    ),
    "dynamic overwrite": lambda lake: lake.table(NAME).overwrite(sales(2, 100), dynamic=True),
    "truncate": lambda lake: lake.table(NAME).truncate(),
    "rewrite manifests": lambda lake: lake.table(NAME).rewrite_manifests(),
    "create as": lambda lake: lake.create_table_as("shop.new", NEW_ROWS, NEW_LAYOUT),
    "replace as": lambda lake: lake.create_table_as(NAME, NEW_ROWS, NEW_LAYOUT, replace=True),
    "create": lambda lake: lake.create_table("shop.new", SALES),
    "create branch": lambda lake: lake.table(NAME).create_branch("b"),
    "create tag": lambda lake: lake.table(NAME).create_tag("t"),
    "drop ref": lambda lake: lake.table(NAME).drop_ref("audit"),
    "set properties": lambda lake: lake.table(NAME).set_properties({"a": "b"}),
    "rollback": lambda lake: lake.table(NAME).rollback_to(
        lake.table(NAME).snapshots()[0].snapshot_id
    ),
}
CREATES = {"create as", "create"}


def make_table(warehouse: Path, catalog: str | None) -> None:
    with connect(str(warehouse), catalog) as lake:
        lake.create_namespace("shop")
        table = lake.create_table(NAME, SALES, partition_by=["store"])
        table.append(sales(8))
        table.append(sales(8, 8))
        table.create_branch("audit")
