"""Existing data files that become part of a table: found, read and matched to its partitions.

The verbs `add_files`, `snapshot` and `migrate` use it. Files are only read here, never written.
"""
