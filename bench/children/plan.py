"""Plans one table: cold, warm, filtered. Arguments: system, warehouse, table, filter, cache.

The filter is a first ticket, or "=" and a date, which is then planned alone. A table of a
thousand files is planned first, so that imports and first calls do not count.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.children.report import timed
from bench.peers.base import TableRef

WARMUP = "shared.plan_1000"
Planner = Callable[[TableRef, str], int]


def pyiceberg_planner() -> Planner:
    from pyiceberg.table import StaticTable

    def plan(table: TableRef, wanted: str) -> int:
        static = StaticTable.from_metadata(table.metadata_location)
        scan = static.scan(condition(wanted)) if wanted else static.scan()
        return sum(1 for _ in scan.plan_files())

    def condition(wanted: str) -> str:
        if wanted.startswith("="):
            return f"ss_sold_date_sk == {wanted[1:]}"
        return f"ss_ticket_number >= {wanted}"

    return plan


def rowlake_planner(warehouse: Path) -> Planner:
    from rowlake.catalog.open import open_catalog
    from rowlake.catalog.tables import load_table
    from rowlake.iceberg.metadata import view_of
    from rowlake.model.predicate import Leaf, Op
    from rowlake.plan.files import plan_files
    from rowlake.storage.files import Storage

    catalog = open_catalog(str(warehouse), "filesystem")

    def plan(table: TableRef, wanted: str) -> int:
        view = view_of(load_table(catalog, table.name))
        return plan_files(view, predicate(wanted), Storage(view.io_properties)).file_count

    def predicate(wanted: str) -> Any:
        if wanted.startswith("="):
            return Leaf(("ss_sold_date_sk",), Op.EQ, (int(wanted[1:]),))
        return Leaf(("ss_ticket_number",), Op.GE, (int(wanted),)) if wanted else None

    return plan


def main(system: str, warehouse: str, name: str, wanted: str, cache: str) -> None:
    os.environ["ROWLAKE_CACHE_DIR"] = cache
    root = Path(warehouse)
    plan = rowlake_planner(root) if system == "rowlake" else pyiceberg_planner()
    plan(TableRef(root, WARMUP), "")
    table = TableRef(root, name)
    reports: dict[str, Any] = {}
    steps = [("cold", ""), ("warm", ""), ("filtered", wanted)]
    for step, filtered in steps[2:] if wanted.startswith("=") else steps:
        cost, files = timed(partial(plan, table, filtered))
        reports[step] = {**cost, "files": files}
    print(json.dumps(reports))


if __name__ == "__main__":
    main(*sys.argv[1:])
