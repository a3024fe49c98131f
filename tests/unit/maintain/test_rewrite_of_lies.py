"""Files that are not what they are said to be, read and written again: bounded work, our errors."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from rowlake.errors import SchemaMismatchError
from rowlake.iceberg.cache import default_cache
from tests.histories.driver import driver_lake
from tests.hostile.scene import read_avro, write_avro
from tests.lakes import SALES, rows_of, sales

pytestmark = pytest.mark.iceberg

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


@pytest.mark.timeout(20)
@pytest.mark.parametrize("strategy", ["sort", "zorder"])
def test_a_file_that_is_said_to_be_huge_is_ordered_like_others(table, strategy) -> None:
    before = rows_of(table.arrow())
    lie(table, file_size_in_bytes=COUNTLESS)
    order = "id" if strategy == "sort" else ["id", "store"]
    table.rewrite_data_files(strategy, order, options={"rewrite-all": "true"})
    assert rows_of(table.arrow()) == before


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
