"""One task written: rolling data files with exact metrics, from streams of Arrow batches.

`context.write_context` says in the driver how to write; `kernel.write_batches` does it, in Spark
tasks and in driver threads alike. Nothing here knows Spark or a catalog.
"""
