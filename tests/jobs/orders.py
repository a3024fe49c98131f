"""Statements: a table loaded, merged from a view and a CTE, updated, deleted, reported."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()

spark.sql("CREATE NAMESPACE IF NOT EXISTS job_orders")
spark.sql(
    "CREATE TABLE job_orders.orders (id BIGINT, customer STRING, amount DECIMAL(9, 2), day DATE) "
    "USING iceberg PARTITIONED BY (day)"
)
spark.sql(
    "INSERT INTO job_orders.orders VALUES (1, 'ann', 10.00, DATE '2024-01-01'), "
    "(2, 'bob', 20.50, DATE '2024-01-01'), (3, 'cid', 5.25, DATE '2024-01-02')"
)
spark.createDataFrame(
    [(2, "bob", "21.00", "2024-01-01"), (4, "dee", "7.75", "2024-01-03"), (3, None, None, None)],
    "id BIGINT, customer STRING, amount STRING, day STRING",
).createOrReplaceTempView("arrived")
spark.sql(
    """
    WITH clean AS (
        SELECT id, customer, CAST(amount AS DECIMAL(9, 2)) AS amount, CAST(day AS DATE) AS day
        FROM arrived
    )
    MERGE INTO job_orders.orders AS t USING clean AS s ON t.id = s.id
    WHEN MATCHED AND s.customer IS NULL THEN DELETE
    WHEN MATCHED THEN UPDATE SET *
    WHEN NOT MATCHED THEN INSERT *
    """
)
spark.sql(
    "UPDATE job_orders.orders SET amount = amount * 2 WHERE customer = :who", args={"who": "ann"}
)
spark.sql("DELETE FROM job_orders.orders WHERE amount < ?", args=[8])
spark.sql(
    "CREATE TABLE job_orders.totals USING iceberg AS "
    "SELECT day, count(*) AS orders, sum(amount) AS amount FROM job_orders.orders GROUP BY day"
)
spark.sql("ALTER TABLE job_orders.totals ADD COLUMN note STRING")
spark.sql("INSERT INTO job_orders.totals SELECT day, 0, 0, 'again' FROM job_orders.totals")
spark.sql("CREATE TABLE job_orders.facts (name STRING, value BIGINT)")
snapshots = spark.table("job_orders.orders.snapshots").orderBy("committed_at").collect()
first = spark.sql(
    f"SELECT count(*) AS n FROM job_orders.orders VERSION AS OF {snapshots[0].snapshot_id}"
).first()
facts = [("snapshots", len(snapshots)), ("first", first.n)]
spark.createDataFrame(facts, "name STRING, value BIGINT").writeTo("job_orders.facts").append()
spark.catalog.dropTempView("arrived")
