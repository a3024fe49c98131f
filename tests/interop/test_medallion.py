"""PostgreSQL -> raw -> bronze -> silver -> gold, killed at random: equal to a batch recomputation.

Tables optimize themselves, and a compaction runs beside. `ROWLAKE_MEDALLION_KILLS` sets how many
times the pipeline is killed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from itertools import cycle
from typing import TYPE_CHECKING

import pytest

from rowlake import connect
from rowlake.engine.java import java_home
from rowlake.errors import CommitConflictError
from rowlake.iceberg.cache import default_cache
from tests.parts import medallion
from tests.parts.cdc import connected, rows_there, source_database, source_server
from tests.spark_session import ROOT, worker_environment

if TYPE_CHECKING:
    from pathlib import Path

KILLS = int(os.environ.get("ROWLAKE_MEDALLION_KILLS", "1"))
SCRIPT = ROOT / "tests" / "parts" / "medallion.py"
STATUSES = ("new", "paid", "sent", "cancelled")
MOST_SECONDS = 240


@pytest.mark.timeout(600 + 300 * KILLS)
def test_a_pipeline_that_is_killed_has_what_the_database_has(tmp_path):
    draw = random.Random(9)
    warehouse = str(tmp_path / "lake")
    medallion.create(warehouse)
    with source_server() as server, source_database(server) as database:
        with connected(database) as cursor:
            cursor.execute(
                "CREATE TABLE orders (id bigint PRIMARY KEY, status text, amount bigint)"
            )
            cursor.execute("INSERT INTO orders SELECT i, 'new', i FROM generate_series(1, 50) i")
        with writing(database, random.Random(10)), compacting(warehouse):
            for _ in range(KILLS):
                kill_after_progress(tmp_path, database, draw)
        run_script(tmp_path, database, "finish").wait(MOST_SECONDS)
        check(tmp_path, warehouse, database)


def check(folder: Path, warehouse: str, database: str) -> None:
    default_cache().clear()
    log = (folder / "log").read_text()[-3000:]
    with connected(database) as cursor, connect(warehouse) as lake:
        orders = rows_there(cursor, "orders")
        kept = rows_there(cursor, "orders WHERE status <> 'cancelled'")
        totals = rows_there(
            cursor,
            "orders WHERE status <> 'cancelled' GROUP BY status",
            "status, count(*)::bigint, sum(amount)::bigint",
        )
        assert rows(lake, "raw.orders") == orders, log
        assert rows(lake, "silver.orders") == kept, log
        assert rows(lake, "gold.totals") == totals, log
        for name in ("silver", "bronze", "gold"):
            table = lake.table(next(one for one in medallion.TABLES if one.startswith(name)))
            marks = [one.summary.get("rowlake.batch-id") for one in table.snapshots()]
            found = [int(mark) for mark in marks if mark is not None]
            assert found == sorted(set(found)), name


def rows(lake, name: str) -> list[tuple]:
    return sorted(tuple(row.values()) for row in lake.table(name).arrow().to_pylist())


def run_script(folder: Path, database: str, mode: str) -> subprocess.Popen[bytes]:
    home = java_home()
    environment = {**os.environ, **worker_environment(), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"PYSPARK_PYTHON": sys.executable, **({"JAVA_HOME": home} if home else {})}
    arguments = [str(folder / "lake"), str(folder / "checkpoints"), database, mode]
    with (folder / "log").open("ab") as output:
        return subprocess.Popen(
            [sys.executable, str(SCRIPT), *arguments],
            stdout=output,
            stderr=output,
            env=environment,
            cwd=ROOT,
            start_new_session=True,
        )


def kill_after_progress(folder: Path, database: str, draw: random.Random) -> None:
    """Run the pipeline until gold has a new commit, then a random moment longer."""
    with connect(str(folder / "lake")) as lake:
        before = len(lake.table("gold.totals").snapshots())
        pipeline = run_script(folder, database, "run")
        try:
            deadline = time.monotonic() + MOST_SECONDS
            while len(lake.table("gold.totals").snapshots()) <= before:
                assert pipeline.poll() is None, (folder / "log").read_text()[-3000:]
                assert time.monotonic() < deadline, (folder / "log").read_text()[-3000:]
                time.sleep(0.2)
            time.sleep(draw.uniform(0, 5))
        finally:
            os.killpg(pipeline.pid, signal.SIGKILL)
            pipeline.wait()


@contextmanager
def beside(work):
    """Call a function over and over while the block runs."""
    stop, errors = threading.Event(), []

    def loop() -> None:
        try:
            while not stop.is_set():
                work()
                stop.wait(0.3)
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if errors:
        raise errors[0]


def writing(database: str, draw: random.Random):
    def write() -> None:
        with connected(database) as cursor:
            for _ in range(draw.randint(1, 5)):
                key, status = draw.randint(1, 200), draw.choice(STATUSES)
                cursor.execute(
                    "INSERT INTO orders VALUES (%s, %s, %s) ON CONFLICT (id) "
                    "DO UPDATE SET status = excluded.status, amount = excluded.amount",
                    [key, status, draw.randint(1, 99)],
                )
            cursor.execute("DELETE FROM orders WHERE id = %s", [draw.randint(1, 200)])

    return beside(write)


def compacting(warehouse: str):
    names = cycle(("silver.orders", "bronze.order_changes"))

    def compact() -> None:
        # Where a stream has changed the same files, it goes first.
        with connect(warehouse) as lake, suppress(CommitConflictError):
            lake.table(next(names)).rewrite_data_files(options={"rewrite-all": "true"})

    return beside(compact)
