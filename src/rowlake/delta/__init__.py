"""The Delta Lake format: its log, checkpoints, schemas, statistics and deletion vectors.

Comes in: the folder of a table, whose `_delta_log` says which files it has. Goes out: the nouns of
`rowlake.model`, behind `rowlake.model.format.Format`: an `add` is a row of `files_schema`, its
deletion vector a delete file, a version a snapshot. Delta's own words (add, remove, version, txn)
stay in this room. References are to Delta's PROTOCOL.md.
"""
