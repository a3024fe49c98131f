"""Checks of an attached session, for sessions of any kind: plain PySpark code on lake tables.

Each takes the session, the lake that is attached to it, and a folder of its own.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import rowlake

if TYPE_CHECKING:
    from pathlib import Path


def rows(found: Any) -> list[tuple]:
    return sorted((tuple(row) for row in found.collect()), key=repr)


def fresh(spark: Any, name: str, layout: str = "") -> str:
    """Create `attached.<name>` of a few rows, with Spark's own statements."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS attached")
    table = f"attached.{name}"
    spark.sql(f"CREATE TABLE {table} (id bigint, part string, v bigint) USING iceberg {layout}")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 10), (2, 'b', 20), (3, 'b', 30)")
    return table


def frame(spark: Any, *given: tuple) -> Any:
    return spark.createDataFrame(list(given), "id bigint, part string, v bigint")


def check_statements(spark: Any, lake: Any, _folder: Path) -> None:
    t = fresh(spark, "statements")
    spark.createDataFrame([(2, 21), (9, 90)], "id bigint, v bigint").createOrReplaceTempView("news")
    done = spark.sql(
        f"WITH s AS (SELECT * FROM news) MERGE INTO {t} t USING s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT (id, part, v) VALUES (s.id, 'n', s.v)"
    ).collect()[0]
    assert (done.num_updated_rows, done.num_inserted_rows) == (1, 1)
    spark.sql(f"DELETE FROM {t} WHERE id = :key", args={"key": 3})
    spark.sql(f"UPDATE {t} SET part = ? WHERE id = 1", args=["z"])
    assert rows(spark.sql(f"SELECT * FROM {t}")) == [(1, "z", 10), (2, "b", 21), (9, "n", 90)]
    assert rows(
        spark.sql("SELECT {c} FROM {df} WHERE id > {x}", c=F.col("id"), df=spark.table(t), x=1)
    ) == [(2,), (9,)]
    spark.sql(f"INSERT INTO {t} SELECT * FROM {{df}}", df=frame(spark, (7, "k", 70)))
    assert spark.sql(f"SELECT count(*) FROM {t} JOIN news USING (id)").collect()[0][0] == 2
    assert lake.table(t).history()
    spark.catalog.dropTempView("news")


def check_reads(spark: Any, lake: Any, _folder: Path) -> None:
    t = fresh(spark, "reads")
    first = lake.table(t).snapshots()[-1].snapshot_id
    spark.sql(f"DELETE FROM {t} WHERE id = 1")
    lake.table(t).create_tag("kept", snapshot_id=first)
    kept = [(2, "b", 20), (3, "b", 30)]
    assert rows(spark.table(t)) == kept
    assert rows(spark.read.table(t)) == kept
    assert rows(spark.read.format("iceberg").load(t)) == kept
    assert rows(spark.read.format("rowlake").load(t)) == kept
    assert spark.read.option("snapshot-id", first).table(t).count() == 3
    assert spark.read.format("iceberg").option("tag", "kept").load(t).count() == 3
    assert spark.table(f"{t}.snapshots").count() == 2
    assert rows(spark.table(t).where(F.col("v") > 20).select("id")) == [(3,)]


def check_views_over_both_kinds(spark: Any, _lake: Any, _folder: Path) -> None:
    t = fresh(spark, "viewed")
    spark.sql(
        "CREATE TABLE IF NOT EXISTS spark_catalog.default.sparks (id bigint, w string) USING csv"
    )
    spark.sql("INSERT INTO spark_catalog.default.sparks VALUES (1, 'one'), (2, 'two')")
    try:
        spark.sql(
            f"CREATE OR REPLACE TEMP VIEW both AS SELECT id, v, w FROM {t} JOIN sparks USING (id)"
        )
        assert rows(spark.table("both")) == [(1, 10, "one"), (2, 20, "two")]
        assert rows(spark.sql("WITH c AS (SELECT * FROM both) SELECT max(v) FROM c")) == [(20,)]
        spark.sql(f"INSERT INTO sparks SELECT id, part FROM {t} WHERE id = 3")
        assert rows(spark.table("sparks")) == [(1, "one"), (2, "two"), (3, "b")]
        frame = spark.table("sparks").where("id = 1").selectExpr("id + 100 AS id", "w")
        frame.write.insertInto("sparks")
        assert spark.table("spark_catalog.default.sparks").count() == 4
        assert [each.name for each in spark.catalog.listColumns("sparks")] == ["id", "w"]
    finally:
        spark.catalog.dropTempView("both")
        spark.sql("DROP TABLE sparks")
    assert not spark.catalog.tableExists("sparks")


def check_catalog(spark: Any, _lake: Any, _folder: Path) -> None:
    t = fresh(spark, "listed", "PARTITIONED BY (part)")
    assert spark.catalog.tableExists(t)
    assert spark.catalog.tableExists("listed", "attached")
    assert not spark.catalog.tableExists("attached.nothing")
    assert not spark.catalog.tableExists("no_such_space.nothing")
    assert "listed" in [each.name for each in spark.catalog.listTables("attached")]
    assert spark.catalog.getTable(t).namespace == ["attached"]
    columns = [(c.name, c.dataType, c.isPartition) for c in spark.catalog.listColumns(t)]
    assert columns == [("id", "bigint", False), ("part", "string", True), ("v", "bigint", False)]
    assert spark.catalog.databaseExists("attached")
    assert "attached" in [each.name for each in spark.catalog.listDatabases()]
    spark.catalog.setCurrentDatabase("attached")
    try:
        assert spark.catalog.currentDatabase() == "attached"
        assert spark.table("listed").count() == 3
        assert "listed" in [each.name for each in spark.catalog.listTables()]
    finally:
        spark.sql("USE default")
    spark.catalog.refreshTable(t)
    spark.catalog.cacheTable(t)
    spark.catalog.uncacheTable(t)


def check_writes_to_a_table(spark: Any, _lake: Any, _folder: Path) -> None:
    t = fresh(spark, "written", "PARTITIONED BY (part)")
    frame(spark, (4, "c", 40)).select("v", "part", "id").writeTo(t).append()
    assert rows(spark.table(t))[-1] == (4, "c", 40)
    frame(spark, (5, "b", 50)).writeTo(t).overwritePartitions()
    assert rows(spark.table(t)) == [(1, "a", 10), (4, "c", 40), (5, "b", 50)]
    frame(spark, (6, "a", 60)).writeTo(t).overwrite((F.col("part") == "a") | (F.col("id") == 4))
    assert rows(spark.table(t)) == [(5, "b", 50), (6, "a", 60)]
    frame(spark, (7, "x", 70)).writeTo(t).overwrite(F.lit(True))
    assert rows(spark.table(t)) == [(7, "x", 70)]
    with pytest.raises(Exception, match=r"(?i)cannot be found|no_such"):
        frame(spark, (7, "x", 70)).writeTo("attached.no_such").append()


def check_new_tables(spark: Any, lake: Any, _folder: Path) -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS attached")
    when = datetime.datetime(2024, 5, 6, 7, 8, 9)
    made = spark.createDataFrame(
        [(1, when, Decimal("1.50"))], "id bigint, at timestamp, d decimal(9,2)"
    )
    writer = made.writeTo("attached.made").using("iceberg").tableProperty("owner", "me")
    writer.partitionedBy(F.partitioning.days("at"), F.partitioning.bucket(4, "id")).create()
    table = lake.table("attached.made")
    assert table.properties["owner"] == "me"
    assert [each.transform for each in table.handle.view().spec.fields] == ["day", "bucket[4]"]
    assert rows(spark.table("attached.made")) == [(1, when, Decimal("1.50"))]
    with pytest.raises(rowlake.RowlakeError, match="already"):
        made.writeTo("attached.made").create()
    made.select("id").writeTo("attached.made").createOrReplace()
    assert spark.table("attached.made").columns == ["id"]
    made.writeTo("attached.made").replace()
    assert len(spark.table("attached.made").columns) == 3
    with pytest.raises(rowlake.TableNotFoundError):
        made.writeTo("attached.never").replace()
    made.writeTo("attached.deltas").using("delta").create()
    assert lake.table("attached.deltas").format == "delta"


def check_saved_tables(spark: Any, lake: Any, _folder: Path) -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS attached")
    first = frame(spark, (1, "a", 10), (2, "b", 20))
    first.write.format("iceberg").partitionBy("part").saveAsTable("attached.saved")
    assert len(lake.table("attached.saved").handle.view().spec.fields) == 1
    with pytest.raises(rowlake.RowlakeError, match="already"):
        first.write.saveAsTable("attached.saved")
    first.write.mode("ignore").saveAsTable("attached.saved")
    frame(spark, (3, "c", 30)).select("v", "id", "part").write.saveAsTable(
        "attached.saved", mode="append"
    )
    assert rows(spark.table("attached.saved")) == [(1, "a", 10), (2, "b", 20), (3, "c", 30)]
    other = spark.createDataFrame([(8, "p", 80)], "x bigint, y string, z bigint")
    other.write.insertInto("attached.saved")
    assert spark.table("attached.saved").count() == 4
    other.write.insertInto("attached.saved", overwrite=True)
    assert rows(spark.table("attached.saved")) == [(8, "p", 80)]
    frame(spark, (9, "p", 90)).write.option("partitionOverwriteMode", "dynamic").mode(
        "overwrite"
    ).insertInto("attached.saved")
    assert rows(spark.table("attached.saved")) == [(9, "p", 90)]
    other.write.mode("overwrite").saveAsTable("attached.saved")
    assert spark.table("attached.saved").columns == ["x", "y", "z"]
    other.write.format("iceberg").mode("append").save("attached.saved")
    assert spark.table("attached.saved").count() == 2
    with pytest.raises(rowlake.InvalidStatementError, match="bucketBy"):
        first.write.bucketBy(2, "id").mode("append").saveAsTable("attached.saved")
    with pytest.raises(rowlake.InvalidStatementError, match="save mode"):
        lake_mode(first).saveAsTable("attached.saved")


def lake_mode(given: Any) -> Any:
    writer = given.write
    writer._asked.mode = "sideways"  # which PySpark itself refuses, classic and Connect apart
    return writer


def check_merges(spark: Any, _lake: Any, _folder: Path) -> None:
    t = fresh(spark, "merged")
    source = frame(spark, (2, "it's", 1), (3, "drop", 0), (9, "new", 9)).alias("s")
    (
        source.mergeInto(t, F.col("merged.id") == F.col("s.id"))
        .whenMatched(F.col("s.part") == "drop")
        .delete()
        .whenMatched()
        .update({"v": F.col("merged.v") + F.col("s.v") * F.lit(2), "part": F.upper("s.part")})
        .whenNotMatched(F.col("s.v").isin(9, 10))
        .insertAll()
        .whenNotMatchedBySource(F.col("merged.v") <= 10)
        .update({"part": F.lit("un'matched \\ \n")})
        .merge()
    )
    assert rows(spark.table(t)) == [(1, "un'matched \\ \n", 10), (2, "IT'S", 22), (9, "new", 9)]
    plain = frame(spark, (2, "q", 5), (4, "r", 6))
    (
        plain.mergeInto(t, F.expr("merged.id") == plain.id)
        .whenMatched()
        .updateAll()
        .whenNotMatched()
        .insert({"id": plain["id"], "v": F.when(plain.v > 5, F.lit(1)).otherwise(plain.v)})
        .whenNotMatchedBySource()
        .delete()
        .merge()
    )
    assert rows(spark.table(t)) == [(2, "q", 5), (4, None, 1)]
    wide = plain.withColumn("extra", F.lit("more")).alias("s")
    merge = wide.mergeInto(t, F.expr("merged.id = s.id")).whenMatched().updateAll()
    merge.withSchemaEvolution().merge()
    assert rows(spark.table(t)) == [(2, "q", 5, "more"), (4, "r", 6, "more")]


def check_what_a_merge_cannot_take(spark: Any, _lake: Any, _folder: Path) -> None:
    t = fresh(spark, "refused")
    source = frame(spark, (2, "x", 1))
    upper = F.udf(lambda text: text.upper())
    matched = source.mergeInto(t, F.col("refused.id") == source.id).whenMatched()
    with pytest.raises(rowlake.UnsupportedFeatureError, match="function of Python"):
        matched.update({"part": upper(source.part)})
    other = frame(spark, (2, "x", 1))
    with pytest.raises(rowlake.InvalidStatementError, match="another DataFrame"):
        matched.update({"part": other.part})
    with pytest.raises(rowlake.InvalidStatementError, match="WHEN clause"):
        source.mergeInto(t, F.col("refused.id") == source.id).merge()
    assert len(rows(spark.table(t))) == 3


def check_streams(spark: Any, lake: Any, folder: Path) -> None:
    t = fresh(spark, "streamed")
    into = "attached.streamed_into"

    def run(checkpoint: str) -> Any:
        read = spark.readStream.table(t)
        writer = read.writeStream.option("checkpointLocation", str(folder / checkpoint))
        query = writer.trigger(availableNow=True).queryName("copying").toTable(into)
        assert query.awaitTermination(180)
        return query

    assert run("first").name == "copying"
    assert rows(spark.table(into)) == rows(spark.table(t))
    spark.sql(f"INSERT INTO {t} VALUES (4, 'd', 40)")
    run("first")
    assert rows(spark.table(into)) == rows(spark.table(t))
    run("second")  # another query: all rows once more
    assert spark.table(into).count() == 8
    assert len({each.summary.get("rowlake.app-id") for each in lake.table(into).snapshots()}) == 2


def check_batches_find_the_lake(spark: Any, _lake: Any, folder: Path) -> None:
    t = fresh(spark, "batched")
    spark.sql("CREATE TABLE attached.batched_into (id bigint, n bigint) USING iceberg")

    def write(batch: Any, number: int) -> None:
        batch.select("id").createOrReplaceTempView("batch")
        batch.sparkSession.sql(
            "MERGE INTO attached.batched_into t USING batch s ON t.id = s.id "
            "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 1)"
        )
        batch.selectExpr("id + 100 AS id", "v AS n").writeTo("attached.batched_into").append()

    query = (
        spark.readStream.table(t)
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(180)
    assert query.exception() is None
    found = [(1, 1), (101, 10), (102, 20), (103, 30), (2, 1), (3, 1)]
    assert rows(spark.table("attached.batched_into")) == found


CHECKS = [
    check_statements,
    check_reads,
    check_views_over_both_kinds,
    check_catalog,
    check_writes_to_a_table,
    check_new_tables,
    check_saved_tables,
    check_merges,
    check_what_a_merge_cannot_take,
    check_streams,
    check_batches_find_the_lake,
]
