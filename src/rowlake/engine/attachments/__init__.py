"""Spark's own API on lake tables, for sessions that `rowlake.attach` was given.

`registry` knows which sessions have a lake. While there is one, the entry points of PySpark
(`spark.sql`, `spark.table`, `spark.read`, `df.write`, `df.mergeInto`, …) are wrapped
(`entry_points`): in a session with a lake they ask it first (`drop_in.DropIn`), and whatever is
not the lake's goes to PySpark's own code. `readers`, `writers`, `merging` and `streams` are
PySpark's classes with the few methods overridden that name tables. Calls from rowlake's own modules
always mean Spark.
"""
