"""Streams: files into a table, the table into another one, batch by batch."""

import json
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
folder = Path(tempfile.mkdtemp(prefix="job-streams-"))
(folder / "in").mkdir()
spark.sql("CREATE NAMESPACE IF NOT EXISTS job_streams")
spark.sql("CREATE TABLE job_streams.raw (id BIGINT, v STRING) USING iceberg")
spark.sql("CREATE TABLE job_streams.latest (id BIGINT, v STRING, n BIGINT) USING iceberg")


def arrive(name, *events):
    lines = [json.dumps({"id": key, "v": value}) for key, value in events]
    (folder / "in" / name).write_text("\n".join(lines))


def load():
    files = spark.readStream.schema("id BIGINT, v STRING").json(str(folder / "in"))
    writer = files.writeStream.option("checkpointLocation", str(folder / "loading"))
    writer.trigger(availableNow=True).toTable("job_streams.raw").awaitTermination()


def upsert(batch, _number):
    batch.groupBy("id").agg({"v": "max", "*": "count"}).toDF(
        "id", "v", "n"
    ).createOrReplaceTempView("batch")
    batch.sparkSession.sql(
        "MERGE INTO job_streams.latest t USING batch s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v, n = t.n + s.n WHEN NOT MATCHED THEN INSERT *"
    )


def follow():
    rows = spark.readStream.table("job_streams.raw")
    writer = rows.writeStream.foreachBatch(upsert)
    writer = writer.option("checkpointLocation", str(folder / "following"))
    writer.trigger(availableNow=True).start().awaitTermination()


arrive("a.json", (1, "one"), (2, "two"))
load()
follow()
arrive("b.json", (2, "zwei"), (3, "drei"))
load()
load()
follow()
