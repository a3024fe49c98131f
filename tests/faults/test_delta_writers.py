"""Many writers of one Delta table: every commit lands once, and versions have no holes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import rowlake

WRITERS, COMMITS = 8, 8
ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import sys
import pyarrow as pa
import rowlake
warehouse, path, first, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with rowlake.connect(warehouse) as lake:
    for number in range(first, first + count):
        rows = pa.table({"id": pa.array([number], pa.int64())})
        lake.table(("delta", path)).append(rows)
"""


def test_writers_that_race_for_versions_lose_no_commit(tmp_path):
    warehouse, path = str(tmp_path / "lake"), str(tmp_path / "t")
    with rowlake.connect(warehouse) as lake:
        lake.create_table(("delta", path), pa.schema([("id", pa.int64())]))
        started = [
            subprocess.Popen(
                [sys.executable, "-c", SCRIPT, warehouse, path, str(one * COMMITS), str(COMMITS)],
                cwd=ROOT,
                stderr=subprocess.PIPE,
                text=True,
            )
            for one in range(WRITERS)
        ]
        for one in started:
            _, errors = one.communicate(timeout=400)
            assert one.returncode == 0, errors[-2000:]
        table = lake.table(("delta", path))
        assert sorted(table.arrow()["id"].to_pylist()) == list(range(WRITERS * COMMITS))
    log = sorted(Path(path, "_delta_log").glob("*.json"))
    assert [int(one.stem) for one in log] == list(range(WRITERS * COMMITS + 1))
    tokens = [json.loads(one.read_text().splitlines()[0])["commitInfo"]["txnId"] for one in log]
    assert len(set(tokens)) == len(log)
