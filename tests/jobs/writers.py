"""DataFrames written: `writeTo`, `saveAsTable` and `insertInto` in their modes."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE NAMESPACE IF NOT EXISTS job_writers")
events = spark.range(12).select(
    F.col("id"),
    F.timestamp_seconds(F.lit(1_700_000_000) + F.col("id") * 40_000).alias("at"),
    F.concat(F.lit("kind "), (F.col("id") % 3).cast("string")).alias("kind"),
)

(
    events.where("id < 9")
    .writeTo("job_writers.events")
    .using("iceberg")
    .partitionedBy(F.partitioning.days("at"))
    .tableProperty("write.format.default", "parquet")
    .create()
)
events.where("id >= 9").select("kind", "at", "id").writeTo("job_writers.events").append()
changed = events.where("id IN (3, 4)").withColumn("kind", F.lit("changed"))
changed.writeTo("job_writers.events").overwritePartitions()

events.write.format("iceberg").partitionBy("kind").saveAsTable("job_writers.saved")
events.where("id = 1").write.mode("append").saveAsTable("job_writers.saved")
events.where("id = 2").write.mode("ignore").saveAsTable("job_writers.saved")
replaced = events.where("id = 5").withColumn("kind", F.lit("kind 1"))
replaced.writeTo("job_writers.saved").overwrite(F.col("kind") == "kind 1")
events.where("id > 7").toDF("a", "b", "c").write.insertInto("job_writers.saved")

events.write.saveAsTable("job_writers.again", format="iceberg")
events.where("id < 2").write.insertInto("job_writers.again", overwrite=True)
events.select("id").writeTo("job_writers.replaced").using("iceberg").create()
events.groupBy("kind").count().writeTo("job_writers.replaced").createOrReplace()
spark.table("job_writers.replaced").write.mode("append").insertInto("job_writers.replaced")
