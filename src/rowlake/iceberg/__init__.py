"""The Iceberg format: metadata, manifests, delete files, snapshots."""
