"""Read one task: data files to Arrow batches, projected by field id, deletes applied.

`kernel.scan_kernel` yields rows, `aggregate` partial aggregates of them. Parquet row groups, ORC
stripes and runs of Avro blocks are units that can be read and skipped by themselves. Nothing here
knows Spark or a catalog.
"""

from rowlake.scan.kernel import output_schema, scan_kernel

__all__ = ["output_schema", "scan_kernel"]
