"""Streams killed (-9) at named points of source and sink: the same rows, one commit a batch.

`ROWLAKE_STREAM_KILLS` sets how many times a query dies at each of the 20 points (5 is the long
form). Without it, two points are tried, others every day.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rowlake import connect
from rowlake.engine.java import java_home
from rowlake.iceberg.cache import default_cache
from rowlake.model.app_batch import APP_ID, BATCH_ID
from tests.parts.killed_stream import NONE, POINTS
from tests.spark_session import ROOT, worker_environment

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = int(os.environ.get("ROWLAKE_STREAM_KILLS", "0"))
SCRIPT = ROOT / "tests" / "parts" / "killed_stream.py"
FIELDS = "id bigint, v bigint, note string"


def chosen_points(today: dt.date) -> tuple[str, ...]:
    """Return two points, one of them of the sink."""
    place = today.toordinal() % 8
    return POINTS[place], POINTS[8 + (today.toordinal() % 12)]


def test_there_are_20_points_and_each_has_its_day():
    assert len(set(POINTS)) == 20
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=number) for number in range(24)]
    assert {point for day in days for point in chosen_points(day)} == set(POINTS)


@pytest.mark.timeout(600 + 600 * ROUNDS)
def test_a_killed_stream_loses_and_repeats_nothing(tmp_path):
    for number in range(ROUNDS or 1):
        points = POINTS if ROUNDS else chosen_points(dt.datetime.now(dt.timezone.utc).date())
        die_at_each(tmp_path / str(number), points, random.Random(number))


def die_at_each(folder: Path, points: tuple[str, ...], draw: random.Random) -> None:
    folder.mkdir()
    with connect(str(folder / "lake")) as lake:
        lake.create_namespace("shop")
        version = {"format-version": draw.choice(("2", "3"))}
        for name in ("source", "target"):
            lake.create_table(f"shop.{name}", FIELDS, properties=version)
    for number, point in enumerate(points):
        change(folder, number, draw)
        # A query that replays a batch may end after it, and read what came later in its next run.
        assert any(follow(folder, point) == -signal.SIGKILL for _ in range(2)), point
        check_batches(folder)
    change(folder, len(points), draw)
    assert [follow(folder, NONE), follow(folder, NONE)] == [0, 0]
    check_batches(folder)
    default_cache().clear()
    with connect(str(folder / "lake")) as lake:
        source, target = (lake.table(f"shop.{name}").arrow() for name in ("source", "target"))
        assert rows(target) == rows(source)


def change(folder: Path, number: int, draw: random.Random) -> None:
    """Commit to the source: rows that come, change and go, and at times a compaction."""
    with connect(str(folder / "lake")) as lake:
        table = lake.table("shop.source")
        keys = range(10 * number, 10 * number + 10)
        table.append([{"id": key, "v": 0, "note": f"n{key}"} for key in keys])
        mode = draw.choice(("copy-on-write", "merge-on-read"))
        changed = [{"id": draw.randrange(10 * number + 10), "v": number, "note": "changed"}]
        table.upsert(changed, ["id"], mode=mode)
        table.delete(f"id = {draw.randrange(10 * number + 10)}", mode=mode)
        if draw.random() < 0.3:
            table.rewrite_data_files(options={"rewrite-all": "true"})


def follow(folder: Path, point: str) -> int:
    """Run the query in a process group of its own; return its exit code."""
    home = java_home()
    environment = {**os.environ, **worker_environment(), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"PYSPARK_PYTHON": sys.executable, **({"JAVA_HOME": home} if home else {})}
    arguments = [str(folder / "lake"), str(folder / "checkpoint"), point]
    log = folder / "log"
    with log.open("wb") as output:
        done = subprocess.run(
            [sys.executable, str(SCRIPT), *arguments],
            stdout=output,
            stderr=output,
            env=environment,
            cwd=ROOT,
            start_new_session=True,
            timeout=300,
        )
    if done.returncode not in (0, -signal.SIGKILL):
        pytest.fail(f"{point}: {log.read_text()[-4000:]}")
    return done.returncode


def check_batches(folder: Path) -> None:
    """Check that each batch is in one commit, and that none is missing."""
    default_cache().clear()
    with connect(str(folder / "lake")) as lake:
        summaries = [one.summary for one in lake.table("shop.target").snapshots()]
    numbers = [int(one[BATCH_ID]) for one in summaries if one.get(APP_ID) == "copy"]
    assert numbers == list(range(len(numbers)))


def rows(table) -> list[tuple]:
    return sorted(tuple(row.values()) for row in table.to_pylist())
