from __future__ import annotations

import datetime
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake import connect
from rowlake.engine.parquet import FIELD_ID_SETTING
from rowlake.engine.spark import Engine
from rowlake.errors import CorruptTableError, RowlakeError, StorageError
from rowlake.model.schema import Schema
from tests.in_time import failure_in_time
from tests.lakes import SALES, sales

ROWS = 50_000


def column(name, arrow_type, number, **metadata):
    ids = {"PARQUET:field_id": str(number)}
    return pa.field(name, arrow_type, metadata={**ids, **metadata})


def schema_of(*columns):
    return Schema(pa.schema(columns))


@pytest.fixture
def engine(spark):
    return Engine(spark)


@pytest.fixture
def by_name(spark):
    spark.conf.set(FIELD_ID_SETTING, "false")
    yield
    spark.conf.set(FIELD_ID_SETTING, "true")


KEY = column("key", pa.string(), 8).with_nullable(False)
WRITTEN = schema_of(column("a", pa.int32(), 1), column("b", pa.int64(), 2))


@pytest.fixture
def written(tmp_path):
    table = pa.table(
        [pa.array(range(ROWS), pa.int32()), pa.array([-n for n in range(ROWS)], pa.int64())],
        schema=WRITTEN.arrow,
    )
    path = tmp_path / "day=2024-01-01" / "a=7" / "odd {name}[1]*.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(table, path, row_group_size=5000)
    return [str(path)]


def test_files_are_read_by_name_without_any_setting(engine, written, by_name):
    frame = engine.read_parquet(written, WRITTEN, [WRITTEN])
    assert frame.columns == ["a", "b"]
    assert frame.where("a = 7").collect() == [(7, -7)]


def test_added_and_promoted_columns(engine, written, by_name):
    now = schema_of(
        column("a", pa.int64(), 1), column("b", pa.int64(), 2), column("c", pa.string(), 3)
    )
    frame = engine.read_parquet(written, now, [WRITTEN])
    assert frame.where("a = 7 AND c IS NULL").collect() == [(7, -7, None)]


def test_a_renamed_column_needs_field_ids(engine, written, by_name):
    renamed = schema_of(column("a", pa.int32(), 1), column("z", pa.int64(), 2))
    assert engine.read_parquet(written, renamed, [WRITTEN]) is None


def test_a_renamed_column_is_found_by_id(engine, written):
    renamed = schema_of(column("z", pa.int64(), 2), column("a", pa.int32(), 1))
    frame = engine.read_parquet(written, renamed, [WRITTEN])
    assert frame.where("z = -49999").collect() == [(-49999, 49999)]


def test_swapped_names_are_not_left_to_spark(engine, written):
    """Spark would prune row groups by the name that the file gives to the other column."""
    swapped = schema_of(column("b", pa.int32(), 1), column("a", pa.int64(), 2))
    assert engine.read_parquet(written, swapped, [WRITTEN]) is None


def test_a_name_used_again_is_not_left_to_spark(engine, written):
    reused = schema_of(column("b", pa.int64(), 3))
    assert engine.read_parquet(written, reused, [WRITTEN]) is None


@pytest.mark.parametrize(
    "odd",
    [
        column("u", pa.binary(16), 3, **{"rowlake:type": "uuid"}),
        column("f", pa.binary(5), 3),
        column("t", pa.time64("us"), 3),
        column("n", pa.timestamp("ns"), 3),
        column("d", pa.int32(), 3, **{"rowlake:initial-default": "1"}),
        column("two words", pa.int32(), 3),
        column("A", pa.int32(), 3),
        column("_file", pa.string(), 2147483646),
        column("s", pa.struct([column("u", pa.uuid(), 4, **{"rowlake:type": "uuid"})]), 3),
    ],
    ids=lambda field: field.name,
)
def test_columns_that_spark_reads_otherwise_are_left_to_the_kernel(engine, written, odd):
    now = schema_of(*WRITTEN.arrow, odd)
    assert engine.read_parquet(written, now, [WRITTEN]) is None


@pytest.mark.parametrize("location", ["s3://bucket/a.parquet", "/data/_hidden.parquet"])
def test_locations_that_spark_does_not_open_are_left_to_the_kernel(engine, location):
    assert engine.read_parquet([location], WRITTEN, []) is None


def test_old_dates_and_nested_columns_come_as_they_are(engine, tmp_path):
    nested = schema_of(
        column("day", pa.date32(), 1),
        column("ts", pa.timestamp("us"), 2),
        column("s", pa.struct([column("x", pa.int32(), 4)]), 3),
        column("l", pa.list_(column("element", pa.int32(), 6)), 5),
        column("m", pa.map_(KEY, column("value", pa.int32(), 9)), 7),
    )
    row = {
        "day": datetime.date(1500, 1, 1),
        "ts": datetime.datetime(1500, 1, 1),
        "s": {"x": 1},
        "l": [1, 2],
        "m": [("k", 1)],
    }
    path = tmp_path / "x.parquet"
    pq.write_table(pa.Table.from_pylist([row], nested.arrow), path)
    (read,) = engine.read_parquet([str(path)], nested, []).collect()
    assert read.asDict(recursive=True) == {**row, "m": {"k": 1}}


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_a_missing_file_is_named_when_the_frame_is_made(engine, written, tmp_path, form):
    missing = form.format(tmp_path / "none.parquet")
    with pytest.raises(CorruptTableError, match="no such file") as raised:
        engine.read_parquet([*written, missing], WRITTEN, [WRITTEN])
    assert raised.value.location == missing


@pytest.mark.parametrize("kind", ["named pipe", "folder", "device"])
def test_what_is_no_file_is_not_given_to_spark(engine, written, tmp_path, kind):
    path = str(tmp_path / "odd.parquet")
    if kind == "named pipe":
        os.mkfifo(path)
    path = {"folder": str(Path(written[0]).parent), "device": "/dev/zero"}.get(kind, path)
    with pytest.raises(CorruptTableError, match=kind) as raised:
        engine.read_parquet([*written, path], WRITTEN, [WRITTEN])
    assert raised.value.location == path


def test_a_path_with_a_nul_is_refused(engine, written):
    with pytest.raises(StorageError, match="NUL"):
        engine.read_parquet([*written, "/tmp/a\0b.parquet"], WRITTEN, [WRITTEN])


@pytest.mark.parametrize("odd", ["missing", "pipe"])
def test_frames_and_sql_name_a_data_file_that_is_gone(spark, tmp_path, odd):
    with connect(str(tmp_path), spark=spark) as lake:
        lake.create_namespace("shop")
        table = lake.create_table("shop.sales", SALES)
        table.append(sales(8))
        path = table.files()["file_path"].to_pylist()[0]
        Path(path).unlink()
        if odd == "pipe":
            os.mkfifo(path)
        for read in (
            lambda: table.df().collect(),
            lambda: lake.sql("SELECT * FROM shop.sales").collect(),
            lambda: lake.sql("SELECT note, count(*) FROM shop.sales GROUP BY note").collect(),
            lambda: table.arrow(),
        ):
            error = failure_in_time(read, 60)
            assert isinstance(error, RowlakeError)
            assert path in str(error)
