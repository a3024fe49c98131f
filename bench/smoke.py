"""`python -m bench.smoke`: compare counters of rowlake's operations with known ones.

A small table in a lake of its own, no peers. It counts files, rows, bytes, Spark jobs and shuffled
bytes, which do not depend on how busy the machine is; times are shown, never judged. A counter
above `expected.json` fails the run; `--write` stores the counters of this run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from bench import data, session
from bench.changes import KEYS, MICRO_BATCH, SET_COLUMNS, source_rows
from bench.editors.base import ON
from bench.peers.base import AGGREGATE, SPARK_SCHEMA
from bench.rounds import NOT_YET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXPECTED = Path(__file__).resolve().parent / "expected.json"
ROWS, BUCKETS = 100_000, 16
# Bytes may move a little with versions of compressors and of Spark.
BYTES_TOLERANCE = 1.1
RESULT_COUNTERS = (
    "rows_updated",
    "rows_deleted",
    "rows_inserted",
    "rows_copied",
    "data_files_added",
    "data_files_removed",
    "delete_files_added",
    "files_considered",
    "files_pruned",
    "files_matched",
)
# More of these is better; fewer fails.
GOOD = ("files_pruned",)
# These are what was asked for; any other number is wrong.
EXACT = ("rows_updated", "rows_deleted", "rows_inserted", "rows_read")
Counters = dict[str, float]


class Lake:
    """The lake of the run, its table and its source."""

    def __init__(self, folder: Path) -> None:
        import rowlake

        self.spark = session.start_plain_spark()
        self.lake = rowlake.connect(warehouse=str(folder / "lake"), spark=self.spark)
        self.lake.sql("CREATE NAMESPACE IF NOT EXISTS smoke")
        self.rows = data.store_sales(ROWS, folder)
        self.source = source_rows(self.rows, ROWS, BUCKETS, MICRO_BATCH, 0)

    def fresh(self, name: str, version: int = 3) -> Any:
        """Return an empty table, bucketed as the bench's are."""
        self.lake.sql(
            f"CREATE TABLE smoke.{name} ({SPARK_SCHEMA}) USING iceberg "
            f"PARTITIONED BY (bucket({BUCKETS}, ss_ticket_number)) "
            f"TBLPROPERTIES ('format-version' = '{version}')"
        )
        return self.lake.table(f"smoke.{name}")

    def filled(self, name: str, version: int = 3) -> Any:
        table = self.fresh(name, version)
        table.append(self.frame())
        return table

    def frame(self) -> Any:
        return self.spark.read.schema(SPARK_SCHEMA).parquet(str(self.rows))


def steps(lake: Lake) -> dict[str, Callable[[], Counters]]:
    """Return the operations by name; each makes its own table before the clock starts."""
    names = iter(range(1_000))

    def table(version: int = 3) -> Any:
        return lake.filled(f"t{next(names)}", version)

    def append() -> Callable[[], Any]:
        target = lake.fresh(f"t{next(names)}")
        return lambda: target.append(lake.frame())

    def read(name: str) -> Callable[[], Any]:
        return lambda: len(lake.lake.sql(AGGREGATE.format(table=name)).collect())

    def delete(mode: str) -> Callable[[], Any]:
        target = table()
        key = f"ss_ticket_number = {ROWS // 20}"
        return lambda: target.delete(key, mode=mode)

    def merge(mode: str, version: int = 3) -> Callable[[], Any]:
        target = table(version)
        updates = {name: f"s.{name}" for name in SET_COLUMNS}
        builder = target.merge(lake.source, on=ON, mode=mode).when_matched_update(set=updates)
        return builder.when_not_matched_insert_all().execute

    def upsert() -> Callable[[], Any]:
        target = table(2)
        return lambda: target.upsert(lake.source, keys=list(KEYS), deletes="equality")

    shared = table()
    return {
        "append": append,
        "read": lambda: read("smoke.t0"),
        "count": lambda: lambda: lake.lake.sql("SELECT count(*) FROM smoke.t0").collect()[0][0],
        "delete lazy": lambda: delete("merge-on-read"),
        "delete eager": lambda: delete("copy-on-write"),
        "read after delete": lambda: _after_delete(shared, read("smoke.t0")),
        "merge lazy": lambda: merge("merge-on-read"),
        "merge lazy v2": lambda: merge("merge-on-read", 2),
        "merge eager": lambda: merge("copy-on-write"),
        "upsert equality": upsert,
    }


def _after_delete(table: Any, read: Callable[[], Any]) -> Callable[[], Any]:
    table.delete(f"ss_ticket_number = {ROWS // 20}", mode="merge-on-read")
    return read


def counted(lake: Lake, work: Callable[[], Any]) -> tuple[Counters, float]:
    """Run the work and return its counters and its seconds."""
    before = session.spark_counters(lake.spark)
    start = time.perf_counter()
    answer = work()
    seconds = time.perf_counter() - start
    after = session.spark_counters(lake.spark)
    counters = {name: after[name] - before[name] for name in ("spark_jobs", "shuffled_bytes")}
    if isinstance(answer, int):
        counters["rows_read"] = float(answer)
    elif answer is not None:
        counters |= {name: float(getattr(answer, name, 0)) for name in RESULT_COUNTERS}
        counters |= {"bytes_read": float(answer.bytes_read)}
        counters |= {"bytes_written": float(answer.bytes_written)}
    return counters, seconds


def verdict(name: str, value: float, expected: float | None) -> str:
    """Return the verdict on a counter: same, better, worse, new."""
    if expected is None:
        return "new"
    if value == expected:
        return "same"
    if name in EXACT:
        return "worse"
    if name in GOOD:
        return "better" if value > expected else "worse"
    allowed = expected * (BYTES_TOLERANCE if "bytes" in name else 1.0)
    if value > allowed:
        return "worse"
    return "better" if value < expected else "same"


def judge(found: dict[str, Counters], expected: dict[str, Counters]) -> list[tuple[Any, ...]]:
    """Return (step, counter, value, expected, verdict) of every counter that matters."""
    rows: list[tuple[Any, ...]] = []
    for step, counters in found.items():
        for name, value in counters.items():
            known = expected.get(step, {}).get(name)
            if value or known:
                rows.append((step, name, value, known, verdict(name, value, known)))
    return rows


def run(console: Console) -> dict[str, Counters]:
    """Run all steps and return their counters; unsupported steps are left out."""
    found: dict[str, Counters] = {}
    with scratch() as folder:
        lake = Lake(folder)
        for name, make in steps(lake).items():
            try:
                found[name], seconds = counted(lake, make())
            except Exception as error:
                if type(error).__name__ not in NOT_YET and not isinstance(error, AttributeError):
                    raise
                console.print(f"{name}: [yellow]not yet[/] ({error})", highlight=False)
                continue
            console.print(f"{name}: {seconds:.2f} s", highlight=False)
        lake.lake.close()
        lake.spark.stop()
    return found


@contextmanager
def scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="rowlake-smoke-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def show(console: Console, rows: list[tuple[Any, ...]]) -> None:
    table = Table()
    for column in ("operation", "counter", "counted", "expected", ""):
        table.add_column(column, justify="right" if column in ("counted", "expected") else "left")
    colours = {"worse": "red", "better": "green", "new": "yellow", "same": "dim"}
    last = ""
    for step, name, value, known, said in rows:
        shown = "" if known is None else f"{known:,.0f}"
        colour = f"[{colours[said]}]{said}[/]"
        table.add_row("" if step == last else step, name, f"{value:,.0f}", shown, colour)
        last = step
    console.print(table)


def told(found: dict[str, Counters], rows: list[tuple[Any, ...]], missing: list[str]) -> str:
    """Return the counts of a run in one line."""
    counts = Counter(row[-1] for row in rows)
    verdicts = ", ".join(f"{count} {said}" for said, count in sorted(counts.items()))
    ran = f"{len(found)} operations, {len(rows)} counters: {verdicts}"
    return f"{ran}, {len(missing)} operations did not run" if missing else ran


def main(arguments: list[str]) -> int:
    """Return 0 where no counter rose above what is expected, else 1."""
    parser = argparse.ArgumentParser(prog="python -m bench.smoke", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep what this run counts")
    parsed = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 120)
    start = time.perf_counter()
    found = run(console)
    expected = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    rows = judge(found, expected)
    show(console, rows)
    if parsed.write:
        EXPECTED.write_text(json.dumps(found, indent=1) + "\n")
        console.print(f"kept in {EXPECTED}", highlight=False)
        return 0
    worse = [row for row in rows if row[-1] == "worse"]
    missing = [step for step in expected if step not in found]
    for step in missing:
        console.print(f"[red]{step} is expected and did not run[/]")
    took = f"{time.perf_counter() - start:.0f} s"
    console.print(f"bench-smoke: {told(found, rows, missing)} in {took}", highlight=False)
    return 1 if worse or missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
