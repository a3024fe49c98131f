"""`attach`: a lake behind Spark's own API, so that PySpark code runs on lake tables unchanged.

`rowlake.engine.attachments` wraps PySpark; here is what its requests mean in a lake: `statements`
(`spark.sql`), `reading`, `writing`, `streams`. `owners` decides whether a name is the lake's. What
is not the lake's goes to Spark.
"""
