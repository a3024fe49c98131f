"""Who runs a task: Spark, or the driver itself when the work is tiny.

The only room that knows Spark. Importing it does not import pyspark; that happens when a session
is first needed. `worker`, `failures` and `present` are what a Spark task loads: no pyspark there.
"""
