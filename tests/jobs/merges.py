"""`mergeInto`: conditions and values are columns."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE NAMESPACE IF NOT EXISTS job_merges")
spark.sql(
    "CREATE TABLE job_merges.stock (sku STRING, qty INT, price DOUBLE, tags ARRAY<STRING>, "
    "at TIMESTAMP) USING iceberg"
)
spark.sql(
    "INSERT INTO job_merges.stock VALUES "
    "('a', 1, 1.5, array('x'), TIMESTAMP '2024-01-01 10:00:00'), "
    "('b', 2, 2.5, NULL, NULL), ('c', 3, 3.5, array('y', 'z'), NULL), ('d', 4, 4.5, NULL, NULL)"
)
news = spark.createDataFrame(
    [("a", 10, 9.0), ("b", None, 8.0), ("c", -1, 7.0), ("it's", 5, 6.0)],
    "sku STRING, qty INT, price DOUBLE",
).alias("n")

(
    news.mergeInto("job_merges.stock", F.col("stock.sku") == F.col("n.sku"))
    .whenMatched(F.col("n.qty") < 0)
    .delete()
    .whenMatched(F.col("n.qty").isNull())
    .update({"price": F.greatest("n.price", "stock.price"), "tags": F.array(F.lit("late"))})
    .whenMatched()
    .update(
        {
            "qty": F.col("stock.qty") + F.col("n.qty"),
            "price": F.when(F.col("n.price") > 8, F.lit(8.0)).otherwise(F.col("n.price")),
            "at": F.lit("2024-02-03 04:05:06").cast("timestamp"),
        }
    )
    .whenNotMatched(F.col("n.price").between(1, 100))
    .insert({"sku": F.upper("n.sku"), "qty": F.col("n.qty"), "price": F.expr("n.price / 2")})
    .whenNotMatchedBySource(F.col("stock.qty") > 3)
    .update({"tags": F.transform(F.array(F.lit("p"), F.lit("q")), lambda tag: F.upper(tag))})
    .merge()
)

fresh = spark.createDataFrame([("a", 1), ("e", 2)], "sku STRING, qty INT")
target = spark.sql("SELECT * FROM job_merges.stock LIMIT 0")
(
    fresh.select(
        "sku",
        "qty",
        *(F.lit(None).cast(target.schema[c].dataType).alias(c) for c in target.columns[2:]),
    )
    .alias("f")
    .mergeInto("job_merges.stock", F.expr("stock.sku = f.sku"))
    .whenMatched()
    .updateAll()
    .whenNotMatched()
    .insertAll()
    .merge()
)
