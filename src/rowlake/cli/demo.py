"""`rowlake demo`: what rowlake is for, on an embedded lake, in under a minute.

Loads sales, explains and runs a MERGE, then UPDATE, DELETE and an upsert from a CSV file, shows
what changed between two snapshots, travels in time, lets two writers land at once, and tends the
table. Each step shows its statement, its result and its time. The JVM starts in the background
while the first steps, which need none, run.
"""

from __future__ import annotations

import datetime
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import csv
from rich.console import Console
from rich.markup import escape

from rowlake.cli.output import Output, show
from rowlake.cli.views import history_of
from rowlake.connection import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlake.lake import Lake
    from rowlake.model.result import Result
    from rowlake.table import Table

NAME = "demo.sales"
STORES = 12
DAYS = 120
FIRST_DAY = datetime.date(2026, 1, 1)
CREATE = f"""CREATE TABLE {NAME} (id BIGINT NOT NULL, store INT, sold_on DATE, amount DECIMAL(9, 2))
PARTITIONED BY (months(sold_on))"""
MERGE = f"""MERGE INTO {NAME} t USING demo.changes s ON t.id = s.id
WHEN MATCHED AND s.gone THEN DELETE
WHEN MATCHED THEN UPDATE SET amount = s.amount
WHEN NOT MATCHED THEN INSERT (id, store, sold_on, amount)
     VALUES (s.id, s.store, s.sold_on, s.amount)"""
UPDATE = f"UPDATE {NAME} SET amount = amount + 1 WHERE store = 7 AND sold_on < DATE'2026-01-08'"
DELETE = f"DELETE FROM {NAME} WHERE store = 12 AND sold_on >= DATE'2026-04-01'"
TRAVEL = f"""SELECT 'now' AS moment, count(*) AS sales, sum(amount) AS amount FROM {NAME} UNION ALL
SELECT 'opening', count(*), sum(amount) FROM {NAME} VERSION AS OF 'opening'"""


def run_demo(warehouse: str | None, rows: int) -> None:
    """Run the demo, in a temporary warehouse that is removed at the end if none is given."""
    console = Console(highlight=False)
    with _folder(warehouse) as folder:
        console.print(f"[bold]rowlake demo[/bold]: {rows:,} sales in a lake at {escape(folder)}")
        started = time.perf_counter()
        with connect(warehouse=folder) as lake:
            lake.engine.progress = False
            threading.Thread(target=lambda: lake.spark, daemon=True).start()
            _Tour(lake, rows, folder, console).run()
            spent = time.perf_counter() - started
            console.print(
                f"\n[bold]Done in {spent:.1f} s.[/bold] Every change was one atomic commit."
            )
        if warehouse:
            console.print(f"Look at it:  rowlake ui --warehouse {escape(folder)}")
            console.print(f"Query it:    rowlake shell --warehouse {escape(folder)}")
        else:
            keep = "rowlake demo --warehouse ./demo && rowlake ui --warehouse ./demo"
            console.print(f"Keep its tables and look at them:  {keep}")


@contextmanager
def _folder(warehouse: str | None) -> Iterator[str]:
    if warehouse is not None:
        yield warehouse
        return
    with tempfile.TemporaryDirectory(prefix="rowlake-demo-") as folder:
        yield str(Path(folder) / "lakehouse")


def sales(rows: int, first_id: int = 1, seed: int = 7) -> pa.Table:
    """Return made-up sales."""
    random = np.random.default_rng(seed)
    amounts = pa.array(random.integers(99, 99_999, rows) / 100).cast(pa.string())
    return pa.table(
        {
            "id": pa.array(np.arange(first_id, first_id + rows)),
            "store": pa.array(random.integers(1, STORES + 1, rows).astype(np.int32)),
            "sold_on": pa.array(np.datetime64(FIRST_DAY) + random.integers(0, DAYS, rows)),
            "amount": amounts.cast(pa.decimal128(9, 2)),
        }
    )


def changed_sales(rows: int) -> pa.Table:
    """Return changes: of 2,000 known sales 400 are gone, and 500 sales are new."""
    known, new = sales(2_000, rows // 2, seed=8), sales(500, rows + 1, seed=9)
    gone = [number < 400 for number in range(2_000)] + [False] * 500
    return pa.concat_tables([known, new]).append_column("gone", pa.array(gone))


class _Tour:
    """The steps, in their order."""

    def __init__(self, lake: Lake, rows: int, folder: str, console: Console) -> None:
        self.lake, self.rows, self.folder, self.console = lake, rows, folder, console
        self._step = 0

    @property
    def table(self) -> Table:
        return self.lake.table(NAME)

    def run(self) -> None:
        lake = self.lake
        self.step(CREATE, self._create)
        loaded = (
            f"sales.append({self.rows:,} rows)     # Arrow, pandas, polars, Spark, dicts, a path"
        )
        self.step(loaded, lambda: self.table.append(sales(self.rows)))
        self.step("sales.create_tag('opening')", lambda: self.table.create_tag("opening"))
        lake.create_table_as("demo.changes", changed_sales(self.rows), replace=True)
        self.step("EXPLAIN MERGE …", lambda: lake.sql(f"EXPLAIN {MERGE}").collect()[0][0])
        self.step(MERGE, lambda: lake.sql(MERGE))
        before = self.table.handle.current_snapshot_id
        self.step(UPDATE, lambda: lake.sql(UPDATE))
        self.step(DELETE, lambda: lake.sql(DELETE))
        path = self._csv()
        self.step(f"sales.upsert('{path.name}', keys=['id'])", lambda: self._upsert(path))
        self.step("sales.changes(start=…, keys=['id'])", lambda: self._changes(before))
        self.step(TRAVEL, lambda: lake.sql(TRAVEL))
        self.step("two writers at once, on the same files", self._two_writers)
        self.step("sales.health()", lambda: self.table.health())
        self.step("sales.optimize()", lambda: self.table.optimize())
        self.step("rowlake history demo.sales", lambda: history_of(self.table))

    def step(self, text: str, act: Callable[[], Any]) -> None:
        """Show a statement, run it, show what it gives and how long it took."""
        self._step += 1
        self.console.print(
            f"\n[bold cyan]{self._step:2}  {escape(text)}[/bold cyan]", soft_wrap=True
        )
        started = time.perf_counter()
        found = act()
        if hasattr(found, "toArrow"):
            found = found.toArrow()
        spent = time.perf_counter() - started
        self._show(found)
        self.console.print(f"[dim]{spent:.2f} s[/dim]")

    def _show(self, found: Any) -> None:
        if isinstance(found, pa.Table) or hasattr(found, "to_arrow"):
            show(found, Output.TABLE)
        elif found is not None:
            self.console.print(escape(str(found)), soft_wrap=True)

    def _create(self) -> None:
        self.lake.create_namespace("demo", if_not_exists=True)
        self.lake.drop_table(NAME, if_exists=True, purge=True)
        self.lake.sql(CREATE)

    def _csv(self) -> Path:
        late = pa.concat_tables([sales(900, 1_000, seed=10), sales(100, self.rows + 501, seed=10)])
        path = Path(self.folder) / "late.csv"
        csv.write_csv(late, path)
        return path

    def _upsert(self, path: Path) -> Result:
        return self.table.upsert(path, keys=["id"])

    def _changes(self, start: int | None) -> pa.Table:
        found = self.table.changes_arrow(start=start, keys=["id"])
        counted = found.group_by("_change_type").aggregate([("id", "count")])
        return counted.rename_columns(["_change_type", "rows"]).sort_by("_change_type")

    def _two_writers(self) -> pa.Table:
        """Upsert rows of the same partitions from two threads that hold the same snapshot."""
        tables = [self.table, self.table]
        parts = [sales(200, 10_000, seed=11), sales(200, 20_000, seed=11)]
        barrier = threading.Barrier(2)

        def write(number: int) -> Result:
            barrier.wait()
            return tables[number].upsert(parts[number], keys=["id"])

        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(write, range(2)))
        return pa.table(
            {
                "writer": ["A", "B"],
                "rows_updated": [one.rows_updated for one in results],
                "retries": [one.retries for one in results],
                "snapshot_id": [str(one.snapshot_id) for one in results],
            }
        )
