"""Write one task: streams of Arrow batches to rolling data files with exact metrics.

`context.write_context` decides in the driver how to write; `kernel.write_batches` writes, in
Spark tasks and in driver threads alike, and yields `WRITTEN_FILES` rows. Nothing here knows Spark
or a catalog.
"""
