"""Distinct values of columns, counted in tasks: one theta sketch per column and task.

Comes in: a scan task and the columns to count. Goes out: a row per column (`SKETCHES`), to be
merged by the driver. Memory is bounded by the sketches and one batch. Tasks load this module, so it
imports no PyIceberg.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.codecs.theta import ThetaSketch
from rowlake.model.values import encode
from rowlake.scan.kernel import scan_kernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowlake.model.task import ScanTask

SKETCHES = pa.schema(
    [
        pa.field("field_id", pa.int32()),
        pa.field("theta", pa.uint64()),
        pa.field("hashes", pa.binary()),
    ]
)


@dataclass(frozen=True)
class CountedColumn:
    """A column whose values are counted; `path` leads to it through structs."""

    field_id: int
    path: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name as users write it."""
        return ".".join(self.path)


def sketch_kernel(columns: Sequence[CountedColumn], task: ScanTask) -> Iterator[pa.RecordBatch]:
    """Yield the sketches of a task's rows, deletes applied."""
    sketches = [ThetaSketch() for _ in columns]
    for batch in scan_kernel(task):
        for column, sketch in zip(columns, sketches, strict=True):
            sketch.update(distinct_values(_values(batch, column.path)))
    found = {
        "field_id": [column.field_id for column in columns],
        "theta": [sketch.theta for sketch in sketches],
        "hashes": [sketch.hashes.astype("<u8").tobytes() for sketch in sketches],
    }
    yield pa.RecordBatch.from_pydict(found, schema=SKETCHES)


def sketches_of(found: pa.Table) -> dict[int, ThetaSketch]:
    """Return the sketches of all tasks, merged, by field id."""
    merged: dict[int, ThetaSketch] = {}
    for row in found.to_pylist():
        hashes = np.frombuffer(row["hashes"], dtype="<u8").astype(np.uint64)
        sketch = merged.setdefault(row["field_id"], ThetaSketch())
        sketch.merge(ThetaSketch(hashes, row["theta"]))
    return merged


def distinct_values(values: pa.Array) -> pa.BinaryArray:
    """Return the single-value forms of the values of a batch, each once, without nulls."""
    if pa.types.is_floating(values.type):  # by their bits: NaN, and both zeros, are values
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return encode(pc.unique(values).drop_null())


def _values(batch: pa.RecordBatch, path: Sequence[str]) -> pa.Array:
    top, *below = path
    values = batch.column(top)
    for name in below:
        values = pc.struct_field(values, [name])
    return values
