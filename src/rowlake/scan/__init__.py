"""One task read: data files to Arrow batches, projected by field id, deletes applied."""

from rowlake.scan.kernel import output_schema, scan_kernel

__all__ = ["output_schema", "scan_kernel"]
