"""What only Iceberg tables have: manifests, statistics files, metadata paths, purging drops."""
