"""Compaction of files of which manifests say what is not true: bounded work, errors of ours."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from rowlake.errors import CorruptTableError, SchemaMismatchError
from rowlake.iceberg.cache import default_cache
from rowlake.maintain.compact.rewrite_kernel import _as_they_come
from rowlake.maintain.compact.rewrite_tasks import neighbours
from tests.histories.driver import driver_lake
from tests.hostile.scene import read_avro, write_avro
from tests.lakes import SALES, rows_of, sales

COUNTLESS = 1 << 50


def lie(table, **facts) -> None:
    """Let the one data manifest say something else of its first file."""
    manifest_list = Path(table.handle.metadata.current_snapshot().manifest_list)
    listed = read_avro(manifest_list)
    (row,) = [one for one in listed.records if one["content"] == 0]
    manifest = Path(row["manifest_path"])
    entries = read_avro(manifest)
    entries.records[0]["data_file"] |= facts
    write_avro(manifest, entries)
    row["manifest_length"] = manifest.stat().st_size
    write_avro(manifest_list, listed)
    default_cache().clear()


@pytest.fixture
def table(tmp_path):
    with driver_lake(str(tmp_path)) as lake:
        made = lake.create_table("db.t", SALES, properties={"format-version": "3"})
        made.append(sales(20))
        made.delete("id = 3", mode="merge-on-read")
        yield made


@pytest.mark.parametrize("count", [5, COUNTLESS])
def test_a_file_with_another_count_of_rows_is_named(table, count) -> None:
    (location,) = table.inspect("data_files")["file_path"].to_pylist()
    lie(table, record_count=count)
    with pytest.raises(CorruptTableError) as raised:
        table.rewrite_data_files(options={"rewrite-all": "true"})
    assert raised.value.location == location
    assert str(count) in raised.value.cause


@pytest.mark.timeout(20)
@pytest.mark.parametrize("order", [None, "id"])
def test_a_file_that_is_said_to_be_huge_is_compacted_like_others(table, order) -> None:
    before = rows_of(table.arrow())
    lie(table, file_size_in_bytes=COUNTLESS)
    chosen = {"strategy": "sort", "order": order} if order else {}
    table.rewrite_data_files(options={"rewrite-all": "true"}, **chosen)
    assert rows_of(table.arrow()) == before


@pytest.mark.timeout(20)
def test_runs_of_files_are_no_more_than_files() -> None:
    files = [SimpleNamespace(file_size_in_bytes=size) for size in (10, COUNTLESS, 10)]
    runs = neighbours(SimpleNamespace(files=files), COUNTLESS)
    assert [place for run in runs for place in run] == [0, 1, 2]


@pytest.mark.timeout(20)
def test_parts_end_with_the_rows() -> None:
    batches = [pa.record_batch({"a": np.arange(5)})] * 2
    task = SimpleNamespace(rows=COUNTLESS, parts=COUNTLESS // 4)
    parts = [list(part) for part in islice(_as_they_come(task, iter(batches)), 50)]
    assert sum(len(batch) for part in parts for batch in part) == 10
    assert len(parts) < 50


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_text_that_is_no_utf8_is_refused(tmp_path, file_format) -> None:
    raw = pa.array([b"\xff\xfe" * 20], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 1, raw.buffers())
    with driver_lake(str(tmp_path)) as lake:
        schema = pa.schema([("note", pa.string())])
        properties = {"write.format.default": file_format}
        made = lake.create_table("db.t", schema, properties=properties)
        with pytest.raises(SchemaMismatchError) as raised:
            made.append(pa.table({"note": texts}))
    assert raised.value.column == "note"
    assert "UTF-8" in str(raised.value)
