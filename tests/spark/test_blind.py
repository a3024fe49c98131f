"""Blind upserts of DataFrames: rows meet by key in Spark tasks, which write data and deletes."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

import rowlake
from rowlake.errors import CardinalityError, SchemaMismatchError
from rowlake.rowlevel.equality_writes import blind_upsert
from rowlake.verbs.write import WriteOptions
from tests.lakes import files_in

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("p", pa.string()),
        pa.field("n", pa.int32()),
        pa.field("at", pa.timestamp("us", "UTC")),
    ]
)
SPECS = {"whole": (), "by key": ("bucket(4, id)",), "by other": ("p",), "by both": ("p", "id")}


@pytest.fixture
def lake(spark, tmp_path):
    found = rowlake.connect(str(tmp_path / "lake"), spark=spark)
    found.create_namespace("db")
    return found


@pytest.fixture(params=[2, 3], ids=["v2", "v3"])
def version(request):
    return str(request.param)


def frame(spark, first: int, count: int, n: int):
    return spark.range(first, first + count, 1, 4).selectExpr(
        "id",
        "concat('p', CAST(id % 3 AS string)) AS p",
        f"{n} AS n",
        "timestamp_seconds(id) AS at",
    )


def upsert(table, rows, keys=("id",), **more):
    _, result = blind_upsert(table.handle, table._engine, rows, keys, WriteOptions(), **more)
    return result


def found(table) -> dict[int, int]:
    rows = table.arrow(["id", "n"])
    pairs = dict(zip(rows["id"].to_pylist(), rows["n"].to_pylist(), strict=True))
    assert len(pairs) == rows.num_rows
    return pairs


@pytest.mark.parametrize("kind", SPECS)
def test_frames_are_upserted_by_tasks(lake, spark, version, kind):
    keys = ["id", "p"] if kind == "by both" else ["id"]
    spec = () if kind == "by both" and version == "3" else SPECS[kind]
    table = lake.create_table(
        "db.t", SCHEMA, partition_by=spec, properties={"format-version": version}
    )
    table.append(frame(spark, 0, 300, 0))
    result = upsert(table, frame(spark, 200, 250, 1), keys)
    assert result.rows_inserted == 250
    assert table.snapshots()[-1].summary["added-equality-deletes"] == "250"
    upsert(table, frame(spark, 0, 20, 2), keys)
    expected = dict.fromkeys(range(200), 0) | dict.fromkeys(range(200, 450), 1)
    assert found(table) == expected | dict.fromkeys(range(20), 2)


def test_equal_keys_in_different_partitions_of_a_frame_meet(lake, spark):
    table = lake.create_table("db.dup", SCHEMA, partition_by=["bucket(4, id)"])
    table.append(frame(spark, 0, 10, 0))
    before = files_in(table.location)
    twice = frame(spark, 0, 100, 1).union(frame(spark, 97, 2, 2))
    with pytest.raises(CardinalityError) as caught:
        upsert(table, twice)
    assert {key["id"] for key in caught.value.keys} <= {97, 98}
    assert caught.value.keys
    assert files_in(table.location) == before
    other = twice.selectExpr("id", "p", "n", "timestamp_seconds(id + n) AS at")
    result = upsert(table, other, on_duplicates="latest by at")
    assert result.rows_inserted == 100
    assert found(table) == {number: 2 if number in (97, 98) else 1 for number in range(100)}


def test_null_keys_and_missing_columns_of_frames_are_told(lake, spark):
    table = lake.create_table("db.nulls", SCHEMA)
    with pytest.raises(SchemaMismatchError, match="key column id is null in 1 source rows"):
        upsert(table, frame(spark, 0, 5, 1).selectExpr("nullif(id, 3) AS id", "p", "n", "at"))
    with pytest.raises(SchemaMismatchError, match="lacks at"):
        upsert(table, frame(spark, 0, 5, 1).drop("at"))
    assert table.snapshots() == []


def test_keys_are_equal_in_the_types_of_the_table(lake, spark):
    schema = pa.schema([pa.field("u", pa.uuid()), pa.field("n", pa.int64())])
    table = lake.create_table("db.uuids", schema, partition_by=["bucket(4, u)"])
    text = str(uuid.UUID(int=(0xABCDEF << 100) + 7))
    rows = spark.createDataFrame([(text, 1), (text.upper(), 2)], "u string, n int").repartition(2)
    with pytest.raises(CardinalityError):
        upsert(table, rows, ["u"])
    assert upsert(table, rows, ["u"], on_duplicates="latest by n").rows_inserted == 1
    assert table.arrow()["n"].to_pylist() == [2]


def test_paths_are_read_by_spark(lake, spark, tmp_path):
    table = lake.create_table("db.paths", SCHEMA)
    table.append(frame(spark, 0, 10, 0))
    frame(spark, 5, 10, 1).write.parquet(str(tmp_path / "source.parquet"))
    upsert(table, str(tmp_path / "source.parquet"))
    assert found(table) == {number: int(number >= 5) for number in range(15)}


def test_sorted_tables_and_columns_with_dots(lake, spark):
    schema = pa.schema([pa.field("a.b", pa.int64()), pa.field("n", pa.int32())])
    table = lake.create_table("db.dots", schema)
    lake.sql("ALTER TABLE db.dots WRITE ORDERED BY n")
    rows = spark.range(0, 50, 1, 4).selectExpr("id AS `a.b`", "CAST(-id AS int) AS n")
    upsert(table, rows, ["a.b"])
    upsert(table, rows, ["a.b"])
    assert sorted(table.arrow()["n"].to_pylist()) == list(range(-49, 1))
