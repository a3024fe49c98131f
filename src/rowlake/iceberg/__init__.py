"""The Iceberg format: metadata, manifests, delete files, snapshots.

Reading: a table's metadata becomes a `TableView`; manifest lists and manifests become Arrow
tables, one per partition spec, fields found by id and inherited values filled in. Parsed
manifests are cached in memory and, for remote tables, on local disk, both bounded in bytes.

Writing: `producer` turns a `Change` into manifests, a manifest list and catalog updates;
`expire`, `refs`, `evolution`, `replace` and `updates` build the updates of metadata changes.

Maintenance: `file_history` lists the files of all snapshots, `expire` says which snapshots go, and
`unreachable` which files then have no reader left.

Modules that Spark tasks load import no pyiceberg.
"""
