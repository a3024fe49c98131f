"""Which Parquet sources the driver reads by itself."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq

from rowlake.verbs import small_parquet as room
from rowlake.verbs.small_parquet import small_parquet

ROWS = pa.table({"id": [1, 2], "v": ["a", "b"]})


def test_files_and_flat_folders_are_read(tmp_path):
    folder = tmp_path / "k=7"
    folder.mkdir()
    pq.write_table(ROWS, folder / "a.parquet")
    assert small_parquet(folder / "a.parquet").equals(ROWS)  # no column of the folder's name
    pq.write_table(ROWS, folder / "b.parquet")
    (folder / "_SUCCESS").touch()
    assert small_parquet(str(folder)).equals(pa.concat_tables([ROWS, ROWS]))


def test_all_else_is_left_to_spark(tmp_path, monkeypatch):
    assert small_parquet("s3://bucket/x.parquet") is None
    assert small_parquet(tmp_path / "missing.parquet") is None
    assert small_parquet(tmp_path) is None  # empty
    (tmp_path / "x.csv").write_text("id\n1\n")
    assert small_parquet(tmp_path / "x.csv") is None
    assert small_parquet(tmp_path) is None
    (tmp_path / "x.csv").rename(tmp_path / "x.parquet")
    assert small_parquet(tmp_path / "x.parquet") is None
    nested = tmp_path / "nested" / "k=1"
    nested.mkdir(parents=True)
    pq.write_table(ROWS, nested / "a.parquet")
    assert small_parquet(tmp_path / "nested") is None
    times = pa.table({"at": pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("ns"))})
    pq.write_table(times, tmp_path / "int96.parquet", use_deprecated_int96_timestamps=True)
    assert small_parquet(tmp_path / "int96.parquet") is None
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    pq.write_table(ROWS, mixed / "a.parquet")
    pq.write_table(ROWS.select(["id"]), mixed / "b.parquet")
    assert small_parquet(mixed) is None
    monkeypatch.setattr(room, "MAX_BYTES", 10)
    assert small_parquet(nested / "a.parquet") is None
