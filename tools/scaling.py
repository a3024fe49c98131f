"""Count what operations cost as a table grows, and write the table of docs/scaling.md.

Comes in: numbers of files (`--files 10000 100000 1000000`); `--page` writes the page. Goes out: for
each operation its requests to storage, bytes, tasks and the memory by which a Python process
without a JVM grows. Counters do not depend on how busy the machine is. Tables exist as metadata
only, but for one data file of a thousand rows in a partition of its own. Every operation runs in a
process of its own, which has done the same to a table of ten files before: modules are loaded,
nothing of the table is cached.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlake.table import Table

PAGE = ROOT / "docs" / "scaling.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
NAME = "db.t"
SIZES = (10_000, 100_000, 1_000_000)
FILES_PER_COMMIT = 50_000
PARTITIONS = 1_000
REAL_PARTITION, REAL_ROWS = 5_000, 1_000
MB = 1 << 20
ORPHANS = 100
READS, WRITES = ("read", "open_input", "exists", "_find"), ("write", "create", "open_output")


def build(warehouse: Path, files: int) -> None:
    """Make a table of so many files, of which one is there."""
    import numpy as np
    import pyarrow as pa

    from rowlake import connect
    from tests.lakes import SALES, sales
    from tests.metadata_files import add_files

    with connect(str(warehouse)) as lake:
        lake.create_namespace("db")
        properties = {"format-version": "3", "write.metadata.previous-versions-max": "3"}
        table = lake.create_table(NAME, SALES, partition_by=["store"], properties=properties)
        rows = sales(REAL_ROWS)
        column = pa.array([REAL_PARTITION] * REAL_ROWS, pa.int32())
        table.append(rows.set_column(1, SALES.field("store"), column))
        for first in range(0, files, FILES_PER_COMMIT):
            count = min(FILES_PER_COMMIT, files - first)
            numbers = np.arange(first, first + count)
            lows = 10_000 + numbers * 100
            # One partition after the other, as a table that grows by the day.
            stores = numbers * PARTITIONS // files
            add_files(lake.table(NAME), [64 * MB] * count, stores=stores, lows=lows, width=99)


# ------------------------------------------------------------------------------ the operations


def plan_all(table: Table) -> Any:
    from rowlake.plan.files import plan_files
    from rowlake.storage.files import Storage

    return plan_files(table.handle.view(), None, Storage({})).file_count


def plan_one_partition(table: Table) -> Any:
    from rowlake.model.predicate import Leaf, Op
    from rowlake.plan.files import plan_files
    from rowlake.storage.files import Storage

    predicate = Leaf(("store",), Op.EQ, (PARTITIONS // 2,))
    return plan_files(table.handle.view(), predicate, Storage({})).file_count


def append(table: Table) -> Any:
    from tests.lakes import sales

    return table.append(sales(4, 2_000))


def delete_one_row(table: Table) -> Any:
    return table.delete("id = 17", mode="merge-on-read")


def upsert_few_rows(table: Table) -> Any:
    import pyarrow as pa

    from tests.lakes import SALES, sales

    store = pa.array([REAL_PARTITION] * 100, pa.int32())
    rows = sales(100, 500).set_column(1, SALES.field("store"), store)
    rows = rows.set_column(4, SALES.field("note"), pa.array(["new"] * 100))
    return table.upsert(rows, ["store", "id"], mode="merge-on-read")


def plan_compaction(table: Table) -> Any:
    return table.rewrite_data_files(dry_run=True)


def expire(table: Table) -> Any:
    later = int(time.time() * 1000) + 60_000
    return table.expire_snapshots(older_than=later, retain_last=1)


def find_orphans(table: Table) -> Any:
    """Compare a listing of all files and some orphans with the metadata."""
    return table.remove_orphan_files(
        older_than=int(time.time() * 1000) + 60_000, dry_run=True, force=True, file_list_view=listed
    )


listed: Any = None


def list_files(table: Table) -> None:
    """Prepare the listing, which is not part of what is counted."""
    global listed
    import pyarrow as pa

    found = table.files()["file_path"].combine_chunks()
    orphans = pa.array([f"{table.location}/data/orphan-{n}.parquet" for n in range(ORPHANS)])
    paths = pa.concat_arrays([found.cast(pa.string()), orphans])
    old = pa.scalar(0, pa.timestamp("us", "UTC"))
    times = pa.array([old.as_py()] * len(paths), pa.timestamp("us", "UTC"))
    listed = pa.table({"file_path": paths, "last_modified": times})


OPERATIONS: dict[str, Callable[[Table], Any]] = {
    "plan all files": plan_all,
    "plan one partition": plan_one_partition,
    "append 4 rows": append,
    "delete one row": delete_one_row,
    "upsert 100 rows of one partition": upsert_few_rows,
    "plan a compaction of all": plan_compaction,
    "expire all but one snapshot": expire,
    "find orphans": find_orphans,
}


# --------------------------------------------------------------------------------- measuring


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count calls of storage and the bytes of whole files that go through them."""
    from rowlake.storage.files import Storage

    found: Counter[str] = Counter()
    inside = threading.local()
    kept = {name: getattr(Storage, name) for name in (*READS, *WRITES, "delete")}

    def wrap(name: str) -> Callable[..., Any]:
        method = kept[name]

        def call(storage: Storage, location: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(inside, "busy", False):  # `read` opens the file that it reads
                return method(storage, location, *args, **kwargs)
            inside.busy = True
            try:
                answer = method(storage, location, *args, **kwargs)
            finally:
                inside.busy = False
            found["reads" if name in READS else "writes" if name in WRITES else "deletes"] += 1
            if name in ("write", "create"):
                found["written_bytes"] += len(args[0])
            elif name == "read":
                found["read_bytes"] += len(answer)
            elif name == "open_input":
                found["read_bytes"] += answer.size()
            return answer

        return call

    for name in kept:
        setattr(Storage, name, wrap(name))
    try:
        yield found
    finally:
        for name, method in kept.items():
            setattr(Storage, name, method)


class Peak:
    """Watches the resident memory of this process, which has no JVM."""

    def __enter__(self) -> Peak:
        import pyarrow as pa

        pa.default_memory_pool().release_unused()
        self.before = self.most = resident_bytes()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self.most = max(self.most, resident_bytes())

    def _watch(self) -> None:
        while not self._done.wait(0.005):
            self.most = max(self.most, resident_bytes())


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def measure_here(warehouse: str, operation: str) -> dict[str, float]:
    """Run one operation in this process and return its counters."""
    from rowlake import connect
    from rowlake.engine.tally import tallied

    with tempfile.TemporaryDirectory() as small:
        build(Path(small), 10)
        with connect(small) as lake:
            _prepared(lake.table(NAME), operation)
            OPERATIONS[operation](lake.table(NAME))
    with connect(warehouse) as lake:
        table = lake.table(NAME)
        _prepared(table, operation)
        with counting() as found, tallied() as tally, Peak() as peak:
            started = time.perf_counter()
            OPERATIONS[operation](table)
            seconds = time.perf_counter() - started
    return {
        **{key: float(found[key]) for key in ("reads", "writes", "deletes")},
        "read_bytes": float(found["read_bytes"]),
        "written_bytes": float(found["written_bytes"]),
        "tasks": float(tally.work.driver_tasks + tally.work.spark_tasks),
        "grown_bytes": float(peak.most - peak.before),
        "seconds": seconds,
    }


def _prepared(table: Table, operation: str) -> None:
    from rowlake.iceberg.cache import default_cache

    if operation == "find orphans":
        list_files(table)
        default_cache().clear()


def measure(warehouse: Path, operation: str) -> dict[str, float]:
    """Run one operation in a fresh process; JSON is on the last line of its output."""
    command = [sys.executable, __file__, "--measure", str(warehouse), operation]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{operation}: {done.stderr.strip()[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


# ------------------------------------------------------------------------------------ the page


def rows_of(found: dict[str, dict[int, dict[str, float]]]) -> list[str]:
    """Return the lines of the Markdown table: an operation per line, the sizes in its cells."""
    sizes = sorted({size for by_size in found.values() for size in by_size})
    shown = " / ".join(f"{size:,}" for size in sizes)
    heads = ("requests", "MB read", "MB written", "tasks", "MB of memory")
    lines = [
        f"Each cell: at {shown} files.",
        "",
        f"| operation | {' | '.join(heads)} |",
        "|---|" + "---|" * len(heads),
    ]
    for operation, by_size in found.items():
        cells = [
            [f"{one['reads'] + one['writes'] + one['deletes']:.0f}" for one in by_size.values()],
            [megabytes(one["read_bytes"]) for one in by_size.values()],
            [megabytes(one["written_bytes"]) for one in by_size.values()],
            [f"{one['tasks']:.0f}" for one in by_size.values()],
            [megabytes(one["grown_bytes"]) for one in by_size.values()],
        ]
        lines.append(f"| {operation} | {' | '.join(' / '.join(cell) for cell in cells)} |")
    return lines


def megabytes(value: float) -> str:
    return f"{value / 1e6:.2f}" if value < 1e6 else f"{value / 1e6:.0f}"


def write_page(lines: list[str], page: Path = PAGE) -> None:
    """Replace what stands between the marks of the page."""
    text = page.read_text()
    head, rest = text.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    told = "\n".join(lines)
    page.write_text(f"{head}{BEGIN}\n{told}\n{END}{tail}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--page", action="store_true", help="write the table into docs/scaling.md")
    parser.add_argument("--measure", nargs=2, metavar=("WAREHOUSE", "OPERATION"))
    parser.add_argument("--build", nargs=2, metavar=("WAREHOUSE", "FILES"))
    parsed = parser.parse_args()
    if parsed.measure:
        print(json.dumps(measure_here(*parsed.measure)))
        return
    if parsed.build:
        build(Path(parsed.build[0]), int(parsed.build[1]))
        return
    found: dict[str, dict[int, dict[str, float]]] = {name: {} for name in OPERATIONS}
    for files in parsed.files:
        with tempfile.TemporaryDirectory(prefix="rowlake-scaling-") as folder:
            command = [sys.executable, __file__, "--build", folder, str(files)]
            subprocess.run(command, check=True, cwd=ROOT)
            for operation in OPERATIONS:
                found[operation][files] = measure(Path(folder), operation)
                print(f"{files:>9,} files, {operation}: {found[operation][files]}", flush=True)
    lines = rows_of(found)
    print("\n".join(lines))
    if parsed.page:
        write_page(lines)


if __name__ == "__main__":
    main()
