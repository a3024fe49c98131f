"""Rewrite delete files: merged, converted to vectors or positions, dangling ones removed.

Position delete files are merged by partition into one per data file or partition, or into
deletion vectors; a group keeps its highest data sequence number. Equality deletes are converted
by scanning key columns alone; delete files that no data file needs are removed in the same
commit. Both commit `replace` snapshots whose deletes are merged with those of concurrent writers.
"""
