"""The `rowlake` command.

`app` declares the commands; `quick` keeps metadata commands free of imports they do not need;
`output` prints results as a table, JSON, CSV or Parquet. Exit codes: 0 success, 1 failure, 2
wrong usage, 3 a conflict that can be retried, 4 unknown outcome.
"""
