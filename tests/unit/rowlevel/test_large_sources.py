"""Sources larger than the memory of a task: parts are split, and loaded a few at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from rowlake.rowlevel import operation, source, staged
from tests.lakes import make_lake

ROWS = pa.schema([("id", pa.int64()), ("v", pa.int64())])


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(staged, "_CHUNK_BYTES", 500)
    monkeypatch.setattr(staged, "_INLINE_BYTES", 100)
    monkeypatch.setattr(operation, "PART_BYTES", 1000)
    monkeypatch.setattr(source, "_LOADED_BYTES", 1500)


def table_of(ids, value) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([value] * len(ids))}, ROWS)


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_an_upsert_in_many_parts_is_one_upsert(
    tmp_path, table_format, little_memory, partitioned, mode
):
    lake = make_lake(tmp_path)
    lake.create_namespace("a")
    by = {"partition_by": ["bucket(3, id)"]} if partitioned else {}
    table = lake.create_table("a.t", ROWS, properties={"format-version": "3"}, **by)
    for start in (0, 400, 800):
        table.append(table_of(range(start, start + 400), 1))
    rows = table_of(np.random.default_rng(1).permutation(np.arange(600, 1600)), 2)
    batches = pa.RecordBatchReader.from_batches(ROWS, rows.to_batches(max_chunksize=50))
    result = table.upsert(batches, keys=["id"], mode=mode)
    assert (result.rows_updated, result.rows_inserted) == (600, 400)
    found = {row["id"]: row["v"] for row in table.arrow().to_pylist()}
    assert table.arrow().num_rows == 1600
    assert found == {number: 1 if number < 600 else 2 for number in range(1600)}
