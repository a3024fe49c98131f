"""Rewrite manifests, statistics and paths; no row changes.

`manifests` clusters manifest entries by partition. `table_stats` counts distinct values in one
scan, as theta sketches; `partition_stats` counts manifest entries by partition, incrementally
where an older statistics file allows it. `table_path` stages a copy of the metadata with other
path prefixes.
"""
