"""Rows that Spark found -> positions by data file.

Comes in: a DataFrame of `_file` and `_pos`. Goes out: sorted positions by file. Each Spark task
gathers its own as bitmaps, so that what comes to the driver is small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyroaring import BitMap64

from rowlake.iceberg.deletion_vector import bitmap_of, positions_of
from rowlake.iceberg.position_delete import merged, positions_by_file
from rowlake.rowlevel.delete import Found

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from rowlake.engine.spark import Engine

GATHERED = pa.schema([pa.field("location", pa.string()), pa.field("positions", pa.binary())])


def gather_kernel(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield a bitmap of positions for each data file of a partition's rows."""
    found = positions_by_file((batch.column(0), batch.column(1)) for batch in batches)
    if found:
        bitmaps = [bytes(bitmap_of(positions).serialize()) for positions in found.values()]
        yield pa.RecordBatch.from_arrays(
            [pa.array(list(found), pa.string()), pa.array(bitmaps, pa.binary())], schema=GATHERED
        )


def found_positions(engine: Engine, frame: Any) -> Found:
    """Return the positions that a frame of (`_file`, `_pos`) holds."""
    gathered = engine.consume(frame, gather_kernel, GATHERED, label="finding rows")
    parts: dict[str, list[np.ndarray[Any, Any]]] = {}
    for row in gathered.to_pylist():
        bitmap = BitMap64.deserialize(row["positions"])
        parts.setdefault(row["location"], []).append(positions_of(bitmap))
    return Found({location: merged(found) for location, found in parts.items()})
