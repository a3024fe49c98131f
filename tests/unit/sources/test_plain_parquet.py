"""Which Parquet sources are read without Spark, and that their rows come out whole."""

from __future__ import annotations

import datetime as dt
import decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowlake
from rowlake.sources import plain_parquet as room
from rowlake.sources.plain_parquet import FileSource, source_at

ROWS = pa.table({"id": [1, 2], "v": ["a", "b"]})


def found_at(path) -> FileSource | None:
    return source_at(path, lambda: pytest.fail("Spark was asked"))


def rows_at(path) -> pa.Table:
    source = found_at(path)
    assert source is not None
    return pa.Table.from_batches(source.batches(), source.schema)


def test_files_and_flat_folders_are_read(tmp_path):
    folder = tmp_path / "k=7"
    folder.mkdir()
    pq.write_table(ROWS, folder / "a.parquet")
    assert rows_at(folder / "a.parquet").equals(ROWS)  # no column of the folder's name
    pq.write_table(ROWS, folder / "b.parquet")
    (folder / "_SUCCESS").touch()
    assert rows_at(str(folder)).equals(pa.concat_tables([ROWS, ROWS]))


def test_every_type_that_spark_takes_alike_comes_out_in_its_plain_form(tmp_path):
    at = dt.datetime(2024, 1, 2, 3, 4, 5, 678000)
    written = pa.table(
        {
            "small": pa.array([1, None], pa.int8()),
            "text": pa.array(["x", None], pa.large_string()),
            "word": pa.array(["w", None]).dictionary_encode(),
            "ms": pa.array([at, None], pa.timestamp("ms")),
            "instant": pa.array([at, None], pa.timestamp("us", "Europe/Berlin")),
            "amount": pa.array([decimal.Decimal("1.50"), None], pa.decimal128(9, 2)),
            "tags": pa.array([["a", None], None], pa.large_list(pa.string())).cast(
                pa.list_(pa.string())
            ),
            "by": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())),
            "at": pa.array([{"x": 1.5}, None], pa.struct([("x", pa.float64())])),
        }
    )
    pq.write_table(written, tmp_path / "t.parquet", store_decimal_as_integer=True)
    found = rows_at(tmp_path / "t.parquet")
    assert found.to_pylist() == written.to_pylist()
    assert found.schema.field("word").type == pa.string()
    assert found.schema.field("ms").type == pa.timestamp("us")
    assert found.schema.field("instant").type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1], pa.uint32()),
        pa.array([1], pa.timestamp("ns")),
        pa.array([dt.time(1)], pa.time64("us")),
        pa.array([b"ab"], pa.binary(2)),
        pa.array([{"x": 1}], pa.struct([("x", pa.uint8())])),
    ],
    ids=lambda column: str(column.type),
)
def test_types_that_spark_takes_otherwise_are_left_to_it(tmp_path, column):
    pq.write_table(pa.table({"c": column}), tmp_path / "t.parquet", version="2.6")
    assert found_at(tmp_path / "t.parquet") is None


def test_all_else_is_left_to_spark(tmp_path, monkeypatch):
    assert found_at("s3://bucket/x.parquet") is None
    assert found_at(tmp_path / "missing.parquet") is None
    assert found_at(tmp_path) is None  # empty
    (tmp_path / "x.csv").write_text("id\n1\n")
    assert found_at(tmp_path / "x.csv") is None
    assert found_at(tmp_path) is None
    (tmp_path / "x.csv").rename(tmp_path / "x.parquet")
    assert found_at(tmp_path / "x.parquet") is None
    nested = tmp_path / "nested" / "k=1"
    nested.mkdir(parents=True)
    pq.write_table(ROWS, nested / "a.parquet")
    assert found_at(tmp_path / "nested") is None
    times = pa.table({"at": pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("ns"))})
    pq.write_table(times, tmp_path / "int96.parquet", use_deprecated_int96_timestamps=True)
    assert found_at(tmp_path / "int96.parquet") is None
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    pq.write_table(ROWS, mixed / "a.parquet")
    pq.write_table(ROWS.select(["id"]), mixed / "b.parquet")
    assert found_at(mixed) is None
    twins = pa.table({"a": [1], "A": [2]})
    pq.write_table(twins, tmp_path / "twins.parquet")
    assert found_at(tmp_path / "twins.parquet") is None
    monkeypatch.setattr(room, "MAX_FILES", 0)
    assert found_at(nested / "a.parquet") is None


@pytest.mark.parametrize(
    "said", [{"org.apache.spark.legacyDateTime": ""}, {"org.apache.spark.version": "2.4.8"}]
)
def test_times_of_the_old_calendar_are_left_to_spark(tmp_path, said):
    pq.write_table(ROWS.replace_schema_metadata(said), tmp_path / "t.parquet")
    assert found_at(tmp_path / "t.parquet") is None


def test_row_groups_are_dealt_out_to_tasks_and_each_is_read_once(tmp_path, monkeypatch):
    monkeypatch.setattr("rowlake.plan.tasks.LEAST_TASK_BYTES", 100)
    many = pa.table({"id": range(1000), "v": [str(n) for n in range(1000)]})
    pq.write_table(many.slice(0, 700), tmp_path / "a.parquet", row_group_size=100)
    pq.write_table(many.slice(700), tmp_path / "b.parquet", row_group_size=50)
    pq.write_table(many.slice(0, 0), tmp_path / "c.parquet")
    source = found_at(tmp_path)
    tasks = source.select([("number", "id")]).tasks(3)
    assert len(tasks) == 3
    batches = [batch for task in tasks for batch in room.plain_rows(task)]
    found = pa.Table.from_batches(batches)
    assert found.column_names == ["number"]
    assert sorted(found["number"].to_pylist()) == list(range(1000))


def test_a_file_that_went_away_is_told_and_nothing_is_written(tmp_path):
    pq.write_table(ROWS, tmp_path / "a.parquet")
    source = found_at(tmp_path / "a.parquet")
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(rowlake.StorageError, match=r"a\.parquet: there is no such file"):
        list(source.batches())


def test_a_file_that_is_damaged_is_told(tmp_path):
    pq.write_table(pa.table({"id": range(10_000)}), tmp_path / "a.parquet")
    source = found_at(tmp_path / "a.parquet")
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[4:2000] = bytes(1996)
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(rowlake.InvalidStatementError, match=r"Cannot read rows from .*a\.parquet"):
        list(source.batches())
