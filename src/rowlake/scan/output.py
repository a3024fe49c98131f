"""What a scan gives: table columns and metadata columns, in the order of the projection.

Comes in: table columns of some rows, their positions in the file, and which are deleted. Goes
out: arrays of the output schema. Metadata columns are known by the spec's reserved ids; `_row_id`
and `_last_updated_sequence_number` come from the file where it stores them and are inherited
where it does not, or holds null (spec, "Row lineage assignment").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.schema import children, field_id
from rowlake.model.task import (
    DELETED_COLUMN_ID,
    FILE_COLUMN_ID,
    LAST_UPDATED_COLUMN_ID,
    PARTITION_COLUMN_ID,
    POS_COLUMN_ID,
    ROW_ID_COLUMN_ID,
    SPEC_ID_COLUMN_ID,
)
from rowlake.scan.nested import filled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rowlake.model.task import FileTask, ScanContext

_STORED = frozenset({ROW_ID_COLUMN_ID, LAST_UPDATED_COLUMN_ID})
_COMPUTED = frozenset(
    {FILE_COLUMN_ID, POS_COLUMN_ID, DELETED_COLUMN_ID, SPEC_ID_COLUMN_ID, PARTITION_COLUMN_ID}
)
METADATA_IDS = _STORED | _COMPUTED


def output_schema(context: ScanContext) -> pa.Schema:
    """Return the schema of the batches that a scan of this context yields."""
    fields = list(context.projection.arrow)
    for index, field in enumerate(fields):
        if field_id(field) == PARTITION_COLUMN_ID and context.partition_type is not None:
            fields[index] = field.with_type(context.partition_type)
    return pa.schema(fields)


def stored_fields(fields: Sequence[pa.Field]) -> tuple[pa.Field, ...]:
    """Return the fields that a data file may hold; lineage columns may be null in it."""
    return tuple(
        field.with_nullable(True) if field_id(field) in _STORED else field
        for field in fields
        if field_id(field) not in _COMPUTED
    )


class Rows:
    """Some rows of a file, in order: where they are, and which of them are deleted."""

    def __init__(
        self,
        first_row: int,
        num_rows: int,
        mask: NDArray[np.bool_] | None,
        deleted: NDArray[np.bool_] | None,
        positions: NDArray[np.int64] | None = None,
    ) -> None:
        self._first_row, self._mask, self._deleted = first_row, mask, deleted
        self._positions = positions
        self._all_rows = num_rows
        self.count = num_rows if mask is None else int(np.count_nonzero(mask))

    def positions(self) -> NDArray[np.int64]:
        """Return their positions in the file."""
        if self._positions is not None:
            return self._positions if self._mask is None else self._positions[self._mask]
        if self._mask is None:
            return np.arange(self._first_row, self._first_row + self._all_rows, dtype=np.int64)
        return np.flatnonzero(self._mask).astype(np.int64) + self._first_row

    def deleted(self) -> NDArray[np.bool_]:
        """Return which of them are deleted."""
        if self._deleted is None:
            return np.zeros(self.count, np.bool_)
        return self._deleted if self._mask is None else self._deleted[self._mask]


class Output:
    """The output columns of one data file."""

    def __init__(
        self, fields: Sequence[pa.Field], task: FileTask, partition: pa.DataType | None
    ) -> None:
        self._fields, self._task = fields, task
        self._constants: dict[int, pa.Scalar] = {
            FILE_COLUMN_ID: pa.scalar(task.location),
            SPEC_ID_COLUMN_ID: pa.scalar(task.spec_id, pa.int32()),
        }
        if partition is not None:
            self._constants[PARTITION_COLUMN_ID] = _partition_value(task, partition)

    def arrays(self, stored: Sequence[pa.Array], rows: Rows) -> list[pa.Array]:
        """Return all columns; `stored` are those of `stored_fields`."""
        held = iter(stored)
        result = []
        for field in self._fields:
            known = field_id(field)
            if known in _COMPUTED:
                result.append(self._computed(known, rows).cast(field.type))
            elif known in _STORED:
                result.append(self._lineage(known, next(held), rows))
            else:
                result.append(next(held))
        return result

    def _computed(self, known: int, rows: Rows) -> pa.Array:
        if known == POS_COLUMN_ID:
            return pa.array(rows.positions())
        if known == DELETED_COLUMN_ID:
            return pa.array(rows.deleted())
        return filled(self._constants[known], rows.count)

    def _lineage(self, known: int | None, stored: pa.Array, rows: Rows) -> pa.Array:
        first_row_id = self._task.first_row_id
        if first_row_id is None:  # a snapshot from before the table had row ids
            return pa.nulls(rows.count, stored.type)
        if stored.null_count == 0:
            return stored
        if known == ROW_ID_COLUMN_ID:
            return pc.coalesce(stored, pa.array(rows.positions() + first_row_id))
        inherited = pa.scalar(self._task.data_sequence_number, pa.int64())
        return pc.coalesce(stored, inherited)


def _partition_value(task: FileTask, partition: pa.DataType) -> pa.Scalar:
    values = {
        field.name: _plain(task.partition.get(field_id(field) or -1))
        for field in children(partition)
    }
    return pa.scalar(values, partition)


def _plain(value: object) -> object:
    return getattr(value, "bytes", value)
