"""Run kernels over tasks: as Spark tasks, or in driver threads when the work is small.

The only room that knows Spark. Importing it does not import pyspark; that happens when a session
is first needed. `worker`, `failures` and `present` are loaded by Spark tasks and import no
pyspark.

    Engine(spark)                       the user's session, else the active one, else a local one
    run(kernel, tasks, output)          results to the driver, as an Arrow table
    dataframe(kernel, tasks, output)    lazy; results stay in Spark
    consume(df, kernel, output)         a kernel over the batches of a DataFrame
    gather(spread, tasks, kernel, ...)  tasks whose rows are first brought together by a key
    from_arrow, read_parquet            Arrow data, or Parquet files by field id, as a DataFrame

A kernel is a module-level function from a picklable task to Arrow batches. Kernels that write use
fresh file names, so a task that Spark retries or runs twice leaves orphan files at worst.
"""
