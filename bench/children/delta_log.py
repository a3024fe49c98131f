"""Opens a Delta table of a large log: snapshot, plans, commits. Arguments: table, lake.

The table's data files exist only in its checkpoint, which `bench.cases.delta_log` writes.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pyarrow as pa

from bench.children.report import timed

COLUMNS = ("ticket", "item", "quantity", "price")


def main(folder: str, lake_folder: str) -> None:
    import rowlake
    from rowlake.model.predicate import Leaf, Op
    from rowlake.plan.files import plan_files
    from rowlake.storage.files import Storage

    rows = pa.table(
        {
            "day": pa.array([7], pa.int32()),
            **{name: pa.array([1], pa.int64()) for name in COLUMNS},
        }
    )
    reports: dict[str, Any] = {}
    with rowlake.connect(lake_folder) as lake:

        def plan(predicate: Any) -> int:
            view = lake.table(("delta", folder)).handle.view()
            return plan_files(view, predicate, Storage(view.io_properties)).file_count

        def note(step: str, work: Any) -> None:
            cost, files = timed(work)
            reports[step] = {**cost, "files": files}

        # The first look reads the checkpoint; a table of one handle keeps what it has read.
        note("snapshot", lambda: lake.table(("delta", folder)).handle.view().state.files.num_rows)
        note("plan all", lambda: plan(None))
        note("plan one day", lambda: plan(Leaf(("day",), Op.EQ, (12_345,))))
        table = lake.table(("delta", folder))
        table.append(rows)  # imports and first calls of writing do not count
        note("commit", lambda: table.append(rows).rows_inserted)
    print(json.dumps(reports))


if __name__ == "__main__":
    main(*sys.argv[1:])
