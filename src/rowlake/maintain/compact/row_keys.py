"""The keys by which rows are ordered, as columns of their own, transforms applied.

Runs in tasks and in the driver: samples of keys come back from tasks in this form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from rowlake.model.partition import SortField
from rowlake.model.schema import FIELD_ID, Schema
from rowlake.model.transform import apply_transform, result_type
from rowlake.write.partitions import column_at
from rowlake.write.sort import sort_indices


@dataclass(frozen=True)
class Keys:
    """Sort keys of the rows of a schema; columns that need not be in it are found by id."""

    fields: tuple[SortField, ...]
    schema: Schema

    @cached_property
    def columns(self) -> Schema:
        """The keys as columns, named and identified by their places."""
        return Schema(
            pa.schema([self._column(place, key) for place, key in enumerate(self.fields)])
        )

    def _column(self, place: int, key: SortField) -> pa.Field:
        kind = result_type(key.transform, self.schema.by_id[key.source_id].type)
        return pa.field(str(place), kind, metadata={FIELD_ID: str(place + 1).encode()})

    @cached_property
    def _order(self) -> tuple[SortField, ...]:
        return tuple(
            SortField(place, "identity", key.ascending, key.nulls_first)
            for place, key in enumerate(self.fields, start=1)
        )

    @property
    def source_ids(self) -> tuple[int, ...]:
        """The columns that keys are made of."""
        return tuple(dict.fromkeys(key.source_id for key in self.fields))

    def of(self, rows: pa.RecordBatch, schema: Schema | None = None) -> pa.RecordBatch:
        """Return the keys of rows; `schema` is theirs where some columns were left out."""
        found = schema or self.schema
        values = [
            apply_transform(key.transform, column_at(rows, found, key.source_id))
            for key in self.fields
        ]
        return pa.RecordBatch.from_arrays(values, schema=self.columns.arrow)

    def sorted_places(self, keys: pa.RecordBatch) -> pa.Array:
        """Return the order of rows that have these keys; equal ones stay in theirs."""
        return sort_indices(keys, self._order, self.columns)
