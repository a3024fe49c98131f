"""A writer of checkpoints killed (-9) at any moment, and checkpoints that are cut off.

Each commit of a Delta table writes a checkpoint, a hint and a checksum. The log tells the rows
whatever becomes of those: it is read again, and the next writer goes on.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pyarrow as pa
import pytest

from rowlake import connect
from tests.parts.killed import check_log, table_of
from tests.parts.preloaded import forking

NAME = "shop.t"
KILLS = 3
FIELDS = "id bigint"


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path)) as opened:
        opened.create_namespace("shop")
        yield opened


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def append_forever(warehouse: str, first: int) -> None:
    with connect(warehouse) as lake:
        table = lake.table(NAME)
        while True:
            table.append(rows(first))
            first += 1


def held(lake) -> list[int]:
    return sorted(lake.table(NAME).arrow()["id"].to_pylist())


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_a_log_is_whole_whenever_its_writer_is_killed(tmp_path, lake, policy):
    given = table_of("delta")
    given["properties"]["delta.checkpointPolicy"] = policy
    lake.create_table(NAME, FIELDS, **given)
    chance, before = random.Random(policy), 0
    for _ in range(KILLS):
        writer = forking().Process(target=append_forever, args=(str(tmp_path), before))
        writer.start()
        while len(held(lake)) == before:
            time.sleep(0.01)
        time.sleep(chance.random() / 10)
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        found = held(lake)
        assert found == list(range(len(found)))
        assert len(lake.table(NAME).snapshots()) == len(found) + 1
        before = len(found)
    check_log(lake.table(NAME))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_a_checkpoint_that_was_cut_off_does_not_hide_the_log(lake, policy, share):
    given = table_of("delta")
    given["properties"]["delta.checkpointPolicy"] = policy
    table = lake.create_table(NAME, FIELDS, **given)
    for number in range(3):
        table.append(rows(number))
    cut_off(newest_checkpoint(table), share)
    assert held(lake) == [0, 1, 2]
    lake.table(NAME).delete("id = 1", mode="merge-on-read")
    lake.table(NAME).append(rows(7))
    assert held(lake) == [0, 2, 7]


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_a_hint_that_was_cut_off_is_not_believed(lake, share):
    table = lake.create_table(NAME, FIELDS, **table_of("delta"))
    table.append(rows(1))
    cut_off(log_of(table) / "_last_checkpoint", share)
    assert held(lake) == [1]
    lake.table(NAME).append(rows(2))
    assert held(lake) == [1, 2]


def log_of(table) -> Path:
    return Path(table.location.removeprefix("file://"), "_delta_log")


def newest_checkpoint(table) -> Path:
    return max(log_of(table).glob("*.checkpoint*"))


def cut_off(path: Path, share: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
