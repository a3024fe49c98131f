"""Plans one table: cold, warm, filtered. Arguments: system, warehouse, table, ticket, cache.

A table of a thousand files is planned first, so that imports and first calls do not count.
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
Planner = Callable[[TableRef, "int | None"], int]


def pyiceberg_planner() -> Planner:
    from pyiceberg.table import StaticTable

    def plan(table: TableRef, ticket: int | None) -> int:
        static = StaticTable.from_metadata(table.metadata_location)
        scan = static.scan() if ticket is None else static.scan(f"ss_ticket_number >= {ticket}")
        return sum(1 for _ in scan.plan_files())

    return plan


def rowlake_planner(warehouse: Path) -> Planner:
    from rowlake.catalog.open import open_catalog
    from rowlake.catalog.tables import load_table
    from rowlake.iceberg.metadata import view_of
    from rowlake.model.predicate import Leaf, Op
    from rowlake.plan import plan_files
    from rowlake.storage.files import Storage

    catalog = open_catalog(str(warehouse), "filesystem")

    def plan(table: TableRef, ticket: int | None) -> int:
        view = view_of(load_table(catalog, table.name))
        predicate = None
        if ticket is not None:
            predicate = Leaf(("ss_ticket_number",), Op.GE, (ticket,))
        return plan_files(view, predicate, Storage(view.io_properties)).file_count

    return plan


def main(system: str, warehouse: str, name: str, ticket: str, cache: str) -> None:
    os.environ["ROWLAKE_CACHE_DIR"] = cache
    root = Path(warehouse)
    plan = rowlake_planner(root) if system == "rowlake" else pyiceberg_planner()
    plan(TableRef(root, WARMUP), None)
    table = TableRef(root, name)
    reports: dict[str, Any] = {}
    for step, first in (("cold", None), ("warm", None), ("filtered", int(ticket))):
        cost, files = timed(partial(plan, table, first))
        reports[step] = {**cost, "files": files}
    print(json.dumps(reports))


if __name__ == "__main__":
    main(*sys.argv[1:])
