"""Streaming upserts beside `rowlake optimize --watch`: no writer fails, no row is wrong, and the
table stays small.

`ROWLAKE_SOAK` sets how many seconds it goes on, beside the few of an ordinary run.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import rowlake
from tests.parts.soakers import KEYS, Writer, watching

if TYPE_CHECKING:
    from tests.parts.soakers import Watch

NAME = "soak.t"
SECONDS = float(os.environ.get("ROWLAKE_SOAK", "0"))
BEFORE, ROUNDS = 5, 30
PAUSE_SECONDS = 1.0 if SECONDS else 0.2
INTERVAL_SECONDS = 0.3
SAMPLE_SECONDS = 1.0 if SECONDS else 0.5
# About what two writers add in some rounds of the watch; without it every file would stay.
MOST_FILES = MOST_DELETES = 40
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
PROPERTIES = {
    "commit.retry.num-retries": "100",
    "commit.retry.min-wait-ms": "5",
    "commit.retry.total-timeout-ms": "120000",
    "history.expire.max-snapshot-age-ms": "60000",
    "write.metadata.delete-after-commit.enabled": "true",
}


@dataclass(frozen=True)
class Sample:
    """What the table is like at a moment, and how long it took to read it."""

    data_files: int
    delete_files: int
    snapshots: int
    read_seconds: float

    @classmethod
    def of(cls, table: Any) -> Sample:
        """Look at the table, then read it whole."""
        seen = table.health()
        started = time.monotonic()
        table.arrow()
        took = time.monotonic() - started
        return cls(seen.data_files, seen.delete_files, len(table.handle.metadata.snapshots), took)


@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("version", ["2", "3"])
def test_a_table_under_streaming_upserts_and_a_watch_stays_small_and_right(tmp_path, version):
    warehouse = str(tmp_path / "wh")
    with rowlake.connect(warehouse) as lake:
        lake.create_namespace("soak")
        properties = {"format-version": version, **PROPERTIES}
        # A partition for each writer: what one deletes by value is nothing that the other changes.
        layout = [f"truncate({KEYS}, id)"]
        table = lake.create_table(NAME, COLUMNS, partition_by=layout, properties=properties)
        writers = [Writer(0, True, PAUSE_SECONDS), Writer(1, False, PAUSE_SECONDS)]
        for one in writers:  # the watch begins with some work, and loads all that it takes
            one.write(warehouse, NAME, 0, BEFORE)
        with watching(warehouse, NAME, INTERVAL_SECONDS, tmp_path) as watch:
            samples = sampled(table, writers, warehouse, watch)
            watch.wait_for_rounds(len(watch.rounds) + 2)
            code, said = watch.interrupt()
        show(version, writers, samples, watch)
        assert (code, said) == (0, "rowlake: stopped watching; commits are kept\n")
        assert [one["said"] for one in watch.rounds if not one["report"]] == []
        settled = samples[len(samples) // 3 :]
        assert max(each.data_files for each in settled) < MOST_FILES
        assert max(each.delete_files for each in settled) < MOST_DELETES
        expected = {key: value for writer in writers for key, value in writer.held.items()}
        assert content(table.arrow()) == expected
        table.optimize()
        assert table.health().finding("equality deletes").value == 0
        assert content(table.arrow()) == expected
        assert content(table.evolve().scan().to_arrow()) == expected


def sampled(table: Any, writers: list[Writer], warehouse: str, watch: Watch) -> list[Sample]:
    """Let the writers write; return what the table was like meanwhile.

    On a busy machine they wait for the watch: how many files there are depends on no speed.
    """
    until = time.monotonic() + SECONDS
    samples = []

    def rest() -> None:
        watch.wait_for_rounds(len(watch.rounds) + 1)

    with ThreadPoolExecutor(len(writers)) as pool:
        work = [pool.submit(one.write, warehouse, NAME, until, ROUNDS, rest) for one in writers]
        while not all(each.done() for each in work):
            samples.append(Sample.of(table))
            time.sleep(SAMPLE_SECONDS)
    for each in work:
        each.result()
    return samples


def show(version: str, writers: list[Writer], samples: list[Sample], watch: Watch) -> None:
    """Print what was seen; times say something of the machine, so none is asserted."""
    wrote = ", ".join(f"{each.rounds} writes ({each.retries} retries)" for each in writers)
    print(f"\nformat version {version}: {wrote}; {len(watch.rounds)} rounds of the watch")
    count = max(len(samples) // 10, 1)
    print("data files, delete files, snapshots, seconds of a read: the most of each tenth")
    for start in range(0, len(samples), count):
        part = samples[start : start + count]
        most = [max(each.data_files for each in part), max(each.delete_files for each in part)]
        print(*most, max(each.snapshots for each in part), end=" ")
        print(f"{max(each.read_seconds for each in part):.3f}")
    steps = [f"{step['verb']} {step['state']}" for step in watch.steps]
    print({step: steps.count(step) for step in sorted(set(steps))})


def content(found: pa.Table) -> dict[int, int]:
    ids = found["id"].to_pylist()
    assert len(ids) == len(set(ids))
    return dict(zip(ids, found["v"].to_pylist(), strict=True))
