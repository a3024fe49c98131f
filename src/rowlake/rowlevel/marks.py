"""What row-level changes mark rows with; see `rowlake.write.marks`."""

from rowlake.write.marks import Marked, MarkWriter, Partition

__all__ = ["MarkWriter", "Marked", "Partition"]
