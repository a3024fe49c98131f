"""Writers beside a compactor that never stops: no writer fails, and no row is wrong.

`ROWLAKE_SOAK` sets how many seconds it goes on, beside the few of an ordinary run.
"""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

import rowlake
from tests.parts.race import race
from tests.parts.soakers import soak

SECONDS = float(os.environ.get("ROWLAKE_SOAK", "12"))


@pytest.mark.parametrize("version", ["2", "3"])
def test_writers_beside_compaction_lose_nothing(tmp_path, version):
    warehouse = str(tmp_path / "wh")
    with rowlake.connect(warehouse) as lake:
        lake.create_namespace("soak")
        columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
        properties = {
            "format-version": version,
            "write.delete.mode": "merge-on-read",
            "write.update.mode": "merge-on-read",
            "write.merge.mode": "merge-on-read",
            "commit.retry.num-retries": "100",
            "commit.retry.total-timeout-ms": "120000",
        }
        lake.create_table("soak.t", columns, properties=properties)
    limit = SECONDS + 180
    *writers, compactor = race(
        soak, 3, warehouse, "soak.t", SECONDS, 1.0 if SECONDS > 60 else 0.3, timeout_seconds=limit
    )
    print(
        f"\n{[(w['rounds'], w['retries']) for w in writers]} rounds and retries of writers; "
        f"compactor {compactor}"
    )
    expected = {key: value for writer in writers for key, value in writer["held"].items()}
    with rowlake.connect(warehouse) as lake:
        found = lake.table("soak.t").arrow()
        assert len(found) == len(expected)
        assert dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == expected
        assert compactor["rewritten"] > 0
        theirs = lake.table("soak.t").evolve().scan().to_arrow()
        assert dict(zip(*(theirs[n].to_pylist() for n in ("id", "v")), strict=True)) == expected
