"""Which data files a compaction may bring together: those of a partition, or of older specs.

Iceberg's rule: rows of a file of another spec than the one that is written may go into any
partition, so all such files are one group, whatever their specs: fewer new files come of it, and
the next compaction finds nothing to do. The files of the partition without any value, which is all
there is in an unpartitioned table, are in that group too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.prune.metrics import one_array
from rowlake.prune.row_ranges import partition_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]


def group_keys(files: pa.Table, *, is_written: bool) -> Numbers:
    """Return a number for each file of one spec, equal where files may be rewritten together.

    `is_written`: it is the spec of the new files. The group of no partition is 0, for all specs.
    """
    if not is_written:
        return np.zeros(files.num_rows, np.int64)
    partitions = one_array(files.column("partition"))
    keys, _ = partition_keys(partitions, partitions.slice(0, 0))
    return np.where(_has_no_value(partitions), 0, keys + 1)


def _has_no_value(partitions: pa.StructArray) -> NDArray[np.bool_]:
    empty = np.ones(len(partitions), np.bool_)
    for place in range(partitions.type.num_fields):
        empty &= np.asarray(pc.is_null(pc.struct_field(partitions, [place])))
    return empty
