"""Many writers of one table at once, and writers that are killed: no row lost, none twice."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rowlake.lake import connect
from tests.parts.failing import CATALOGS, stray_files
from tests.parts.race import race
from tests.parts.writers import append_rows

if TYPE_CHECKING:
    from pathlib import Path

NAME = "shop.ids"
PATIENT = {
    "commit.retry.num-retries": "200",
    "commit.retry.min-wait-ms": "20",
    "commit.retry.max-wait-ms": "400",
}


@pytest.fixture(params=CATALOGS, ids=["sqlite", "filesystem"])
def catalog(request):
    return request.param


@pytest.fixture
def warehouse(tmp_path: Path, catalog) -> Path:
    with connect(str(tmp_path), catalog) as lake:
        lake.create_namespace("shop")
        lake.create_table(NAME, pa.schema([("id", pa.int64())]), properties=PATIENT)
    return tmp_path


def check(warehouse: Path, catalog: str | None, expected: list[int]) -> None:
    """Check rows, the chain of snapshots, and that nothing is left behind."""
    with connect(str(warehouse), catalog) as lake:
        table = lake.table(NAME)
        assert sorted(table.arrow()["id"].to_pylist()) == expected
        snapshots = table.snapshots()
        assert [one.sequence_number for one in snapshots] == list(range(1, len(expected) + 1))
        parents = [None, *(one.snapshot_id for one in snapshots[:-1])]
        assert [one.parent_id for one in snapshots] == parents
        totals = [int(one.summary["total-records"]) for one in snapshots]
        assert totals == list(range(1, len(expected) + 1))
    assert stray_files(warehouse, catalog, NAME) == set()


def test_threads_that_append_to_one_table_lose_nothing(warehouse: Path, catalog) -> None:
    writers, commits = 8, 10
    start = threading.Barrier(writers)

    def write(number: int) -> int:
        return append_rows(number, start, str(warehouse), catalog, NAME, commits)

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, range(writers)))
    check(warehouse, catalog, [n * 1000 + c for n in range(writers) for c in range(commits)])


def test_processes_that_append_to_one_table_lose_nothing(warehouse: Path, catalog) -> None:
    race(append_rows, 2, str(warehouse), catalog, NAME, 10)
    check(warehouse, catalog, [n * 1000 + c for n in range(2) for c in range(10)])


def test_one_table_object_may_be_shared_by_threads(warehouse: Path, catalog) -> None:
    with connect(str(warehouse), catalog) as lake, ThreadPoolExecutor(4) as pool:
        table = lake.table(NAME)
        list(pool.map(lambda n: table.append(pa.table({"id": [n]})), range(20)))
    check(warehouse, catalog, list(range(20)))


def test_a_reader_sees_one_snapshot_while_others_commit(warehouse: Path, catalog) -> None:
    with connect(str(warehouse), catalog) as lake:
        table = lake.table(NAME)
        held = table.append(pa.table({"id": [0]})).snapshot_id
        stopped = threading.Event()
        seen: list[list[int]] = []

        def read() -> None:
            while not stopped.is_set():
                seen.append(sorted(table.arrow()["id"].to_pylist()))
                assert table.arrow(snapshot_id=held)["id"].to_pylist() == [0]

        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read)
            with connect(str(warehouse), catalog) as other:
                for number in range(1, 15):
                    other.table(NAME).append(pa.table({"id": [number]}))
                other.table(NAME).overwrite(pa.table({"id": [-1]}))
            stopped.set()
            reading.result(timeout=60)
        allowed = [list(range(n + 1)) for n in range(15)] + [[-1]]
        assert all(one in allowed for one in seen)
        assert table.arrow(snapshot_id=held)["id"].to_pylist() == [0]


WRITER = """
import sys
import pyarrow as pa
from rowlake.lake import connect

warehouse, catalog, first = sys.argv[1], sys.argv[2] or None, int(sys.argv[3])
with connect(warehouse, catalog) as lake:
    table = lake.table("shop.ids")
    print("ready", flush=True)
    for number in range(first, first + 1000):
        table.append(pa.table({"id": [number]}))
        print(number, flush=True)
"""


def test_a_killed_writer_leaves_the_table_at_a_commit(warehouse: Path, catalog) -> None:
    expected: set[int] = set()
    for round_number in range(3):
        expected = _kill_a_writer(warehouse, catalog, round_number * 1000, expected)
    with connect(str(warehouse), catalog) as lake:
        lake.table(NAME).append(pa.table({"id": [-1]}))
        assert set(lake.table(NAME).arrow()["id"].to_pylist()) == expected | {-1}


def _kill_a_writer(warehouse: Path, catalog: str | None, first: int, before: set[int]) -> set[int]:
    command = [sys.executable, "-c", WRITER, str(warehouse), catalog or "", str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(random.uniform(0.05, 0.5))
        writer.kill()
        told = {int(line) for line in writer.stdout.read().split("\n")[:-1]}
    with connect(str(warehouse), catalog) as lake:
        rows = lake.table(NAME).arrow()["id"].to_pylist()
    assert len(rows) == len(set(rows))
    new = set(rows) - before
    # All that was told is there; the one after it may have landed untold.
    assert told <= new
    assert new <= told | {first + len(told)}
    return set(rows)
