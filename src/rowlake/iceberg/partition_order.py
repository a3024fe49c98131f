"""The order of partitions: by their fields, ascending, nulls first, whatever the types.

Comes in: partition values as structs. Goes out: numbers that compare as the values do, so that
sorting and grouping are numpy's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.iceberg.manifest_entries import one_array

if TYPE_CHECKING:
    from collections.abc import Sequence


def partition_ranks(partitions: pa.ChunkedArray) -> list[np.ndarray]:
    """Return each partition field's values as dense ranks: equal where equal, nulls lowest."""
    return [_ranks(column) for column in one_array(partitions).flatten()]


def _ranks(values: pa.Array) -> np.ndarray:
    if pa.types.is_null(values.type):
        return np.zeros(len(values), dtype=np.uint64)
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    elif pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    ranks = np.zeros(len(values), dtype=np.uint64)
    known = np.asarray(values.is_valid())
    ranks[known] = np.asarray(pc.rank(values.drop_null(), tiebreaker="dense"))
    return ranks


def joint_ranks(keys: Sequence[np.ndarray]) -> np.ndarray:
    """Return the dense rank of each row by several keys, the first one first."""
    order = np.lexsort(list(reversed(keys)))
    steps = np.zeros(len(order), dtype=bool)
    for key in keys:
        steps[1:] |= key[order][1:] != key[order][:-1]
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.cumsum(steps)
    return ranks
