"""`rowlake demo`: a short tour on an embedded lake, with progress and readable results.

Creates a partitioned sales table, fills it, changes its schema, overwrites a month, sets a tag,
travels in time, and shows what each step did and how long it took.
"""

from __future__ import annotations

import datetime
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rowlake.cli.output import Output, show
from rowlake.cli.views import history_of
from rowlake.connection import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlake.lake import Lake
    from rowlake.table import Table

NAME = "demo.sales"
STORES = 12
DAYS = 120
FIRST_DAY = datetime.date(2026, 1, 1)


def run_demo(warehouse: str | None, rows: int) -> None:
    """Run the demo, in a temporary warehouse that is removed at the end if none is given."""
    console = Console()
    with _folder(warehouse) as folder:
        console.print(f"[bold]rowlake demo[/bold]: {rows:,} sales in a lake at {escape(folder)}\n")
        with connect(warehouse=folder) as lake:
            started = time.perf_counter()
            table = _run_steps(lake, rows, console)
            _show_result(lake, table, console)
            spent = time.perf_counter() - started
            console.print(f"Done in {spent:.1f} s. Every step above is one atomic commit.")
        if warehouse:
            console.print(f"Explore it:  rowlake shell --warehouse {escape(folder)}")


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
    days = random.integers(0, DAYS, rows)
    return pa.table(
        {
            "id": pa.array(np.arange(first_id, first_id + rows)),
            "store": pa.array(random.integers(1, STORES + 1, rows).astype(np.int32)),
            "sold_on": pa.array(np.datetime64(FIRST_DAY) + days),
            "quantity": pa.array(random.integers(1, 9, rows).astype(np.int32)),
            "amount": pa.array(random.integers(99, 99_999, rows)).cast(pa.decimal128(19, 0)),
        }
    )


def _steps(lake: Lake, rows: int) -> list[tuple[str, Callable[[], Any]]]:
    def table() -> Table:
        return lake.table(NAME)

    def spring() -> Any:
        return lake.sql(
            f"SELECT id, store, sold_on, quantity, amount * 2 AS amount, 'web' AS channel "
            f"FROM {NAME} WHERE sold_on >= DATE'2026-03-01' AND sold_on < DATE'2026-04-01'"
        )

    return [
        ("start Spark", lambda: lake.spark),
        ("create a table partitioned by month", lambda: _create(lake)),
        (f"append {rows:,} rows", lambda: table().append(sales(rows))),
        ("tag this state as 'opening'", lambda: table().create_tag("opening")),
        ("append 10 late sales", lambda: table().append(sales(10, rows + 1, seed=8))),
        (
            "add a column 'channel'",
            lambda: lake.sql(f"ALTER TABLE {NAME} ADD COLUMN channel string"),
        ),
        ("double March and overwrite it", lambda: table().overwrite(spring(), dynamic=True)),
    ]


def _create(lake: Lake) -> None:
    lake.sql("CREATE NAMESPACE IF NOT EXISTS demo")
    lake.sql(
        f"CREATE OR REPLACE TABLE {NAME} (id bigint NOT NULL, store int, sold_on date, "
        "quantity int, amount decimal(19, 0)) PARTITIONED BY (months(sold_on))"
    )


def _run_steps(lake: Lake, rows: int, console: Console) -> Table:
    steps = _steps(lake, rows)
    columns = (BarColumn(), TextColumn("{task.completed}/{task.total}"), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=console) as progress:
        bar = progress.add_task("", total=len(steps))
        for text, step in steps:
            progress.update(bar, description=text)
            before = time.perf_counter()
            step()
            spent = time.perf_counter() - before
            progress.console.print(f"  [green]✓[/green] {text}  [dim]{spent:.2f} s[/dim]")
            progress.advance(bar)
        progress.update(bar, description="")
    return lake.table(NAME)


def _show_result(lake: Lake, table: Table, console: Console) -> None:
    console.print("\n[bold]What was done[/bold] (rowlake history demo.sales)")
    show(history_of(table), Output.TABLE)
    console.print("\n[bold]Sales a month, now and at the tag 'opening'[/bold]")
    month = "date_format(sold_on, 'yyyy-MM')"
    show(
        lake.sql(
            f"SELECT now.month, now.sales, now.amount, was.amount AS amount_at_opening FROM "
            f"(SELECT {month} AS month, count(*) AS sales, sum(amount) AS amount "
            f"FROM {NAME} GROUP BY 1) now LEFT JOIN "
            f"(SELECT {month} AS month, sum(amount) AS amount FROM {NAME} VERSION AS OF 'opening' "
            f"GROUP BY 1) was ON now.month = was.month ORDER BY 1"
        ).toArrow(),
        Output.TABLE,
    )
