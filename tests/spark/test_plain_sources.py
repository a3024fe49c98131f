"""DataFrames that only read Parquet files: their rows go around Spark, and nothing else changes."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as f

import rowlake
from rowlake.engine.relations import parquet_relation
from rowlake.sources.plain_parquet import FileSource
from rowlake.sources.rows import SparkSource, source_of

ROWS = pa.table(
    {
        "id": pa.array(range(1000), pa.int64()),
        "name": [None if n % 7 == 0 else f"n{n}" for n in range(1000)],
        "at": pa.array([dt.datetime(2024, 1, 1)] * 1000, pa.timestamp("us", "UTC")),
    }
)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "odd name é%20"
    made.mkdir()
    pq.write_table(ROWS.slice(0, 600), made / "a b.parquet", row_group_size=100)
    pq.write_table(ROWS.slice(600), made / "c.parquet")
    return str(made)


@pytest.fixture
def lake(spark, tmp_path):
    with rowlake.connect(str(tmp_path / "lake"), spark=spark) as found:
        found.create_namespace("db")
        yield found


def is_plain(lake, frame) -> bool:
    return isinstance(source_of(frame, lake.engine), FileSource)


def test_scans_and_renamings_are_seen(spark, lake, folder):
    frame = spark.read.parquet(folder)
    frame.createOrReplaceTempView("plain_rows")
    assert is_plain(lake, frame)
    assert is_plain(lake, spark.sql("SELECT * FROM plain_rows"))
    renamed = spark.sql("SELECT name AS `a.b`, id FROM (SELECT * FROM plain_rows) AS t")
    source = source_of(renamed, lake.engine)
    assert isinstance(source, FileSource)
    assert source.schema.names == ["a.b", "id"]
    found = pa.Table.from_batches(source.batches())
    assert sorted(found["id"].to_pylist()) == list(range(1000))
    assert found["a.b"].null_count == 143


def test_all_that_does_more_is_left_to_spark(spark, lake, folder, tmp_path):
    frame = spark.read.parquet(folder)
    others = [
        frame.where("id > 3"),
        frame.limit(5),
        frame.withColumn("id", f.col("id") + 1),
        frame.select("id", f.input_file_name().alias("file")),
        frame.select("*", "_metadata.file_name"),
        frame.union(frame),
        frame.distinct(),
        spark.read.schema("id int, name string").parquet(folder),  # other types than the files'
        spark.read.schema("id bigint, more string").parquet(folder),
        spark.read.schema("ID bigint").parquet(folder),
        spark.read.option("pathGlobFilter", "c*").parquet(folder),
        spark.read.option("mergeSchema", "true").parquet(folder),
        spark.range(3),
    ]
    assert [is_plain(lake, each) for each in others] == [False] * len(others)
    pq.write_to_dataset(ROWS.slice(0, 20), str(tmp_path / "parts"), partition_cols=["id"])
    assert not is_plain(lake, spark.read.parquet(str(tmp_path / "parts")))


def test_cached_rows_are_those_that_are_written(spark, lake, folder):
    frame = spark.read.parquet(folder)
    frame.cache().count()
    try:
        assert isinstance(source_of(frame, lake.engine), SparkSource)
    finally:
        frame.unpersist()
    assert is_plain(lake, frame)


def test_settings_that_change_how_files_are_read_are_heeded(spark, lake, folder):
    frame = spark.read.parquet(folder)
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        assert parquet_relation(frame) is None
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")


@pytest.mark.parametrize(
    "layout", ["", "PARTITIONED BY (bucket(4, id))", "PARTITIONED BY (name)"], ids=str
)
def test_a_table_made_of_files_has_their_rows(spark, lake, folder, layout, monkeypatch):
    monkeypatch.setattr("rowlake.plan.tasks.LEAST_TASK_BYTES", 1000)
    spark.read.parquet(folder).createOrReplaceTempView("plain_rows")
    lake.sql(f"CREATE TABLE db.t USING iceberg {layout} AS SELECT * FROM plain_rows")
    lake.table("db.t").append(spark.read.parquet(folder))
    lake.sql("INSERT INTO db.t SELECT * FROM plain_rows")
    table = lake.table("db.t")
    assert table.df().count() == 3000
    assert sorted(table.arrow(columns=["id"])["id"].to_pylist()) == sorted(list(range(1000)) * 3)
    if "bucket" in layout:
        assert len(table.files()) == 12  # rows of a bucket are brought together


def test_a_sorted_table_gets_ranges_from_spark(spark, lake, folder):
    lake.sql("CREATE TABLE db.t (id bigint, name string, at timestamp)")
    lake.sql("ALTER TABLE db.t WRITE ORDERED BY id")
    lake.table("db.t").append(spark.read.parquet(folder))
    assert lake.table("db.t").arrow()["id"].to_pylist() == list(range(1000))


def test_merge_stages_files_without_spark_rows(spark, lake, folder):
    lake.sql("CREATE TABLE db.t (id bigint, name string, at timestamp)")
    table = lake.table("db.t")
    table.append(ROWS.slice(0, 10))
    spark.read.parquet(folder).createOrReplaceTempView("plain_rows")
    merge = (
        "MERGE INTO db.t USING plain_rows AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET "
        "name = s.name WHEN NOT MATCHED THEN INSERT *"
    )
    counts = lake.sql(merge.replace("db.t USING", "db.t AS t USING")).collect()[0]
    assert (counts.num_updated_rows, counts.num_inserted_rows) == (10, 990)
    result = (
        table.merge(folder, on=["id"])
        .when_matched_update(set={"name": "concat(s.name, '!')"})
        .execute()
    )
    assert result.rows_updated == 1000
    assert table.df().where("name = 'n1!'").count() == 1


@pytest.mark.parametrize("layout", ["", "PARTITIONED BY (bucket(4, id))"], ids=str)
def test_upsert_sorts_large_files_without_spark_rows(spark, lake, folder, layout, monkeypatch):
    monkeypatch.setattr("rowlake.sources.rows.SMALL_BYTES", 0)
    monkeypatch.setattr("rowlake.plan.tasks.LEAST_TASK_BYTES", 1000)
    lake.sql(f"CREATE TABLE db.t (id bigint, name string, at timestamp) {layout}")
    table = lake.table("db.t")
    table.append(ROWS.slice(0, 10).set_column(1, "name", pa.array(["old"] * 10)))
    result = table.upsert(spark.read.parquet(folder), keys=["id"])
    assert (result.rows_updated, result.rows_inserted) == (10, 990)
    assert table.arrow().sort_by("id").select(ROWS.column_names).to_pydict() == ROWS.to_pydict()
