"""What users hand in as rows: read, typed and matched to a table's columns by name.

`rows` tells the kinds of input apart, `plain_parquet` reads Parquet files without Spark rows, and
`column_match` maps incoming columns to those of the table.
"""
