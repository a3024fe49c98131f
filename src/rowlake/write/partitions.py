"""Rows split by partition, whole columns at a time.

Comes in: a batch in the table's schema. Goes out: one batch per partition, rows in their order,
partitions in the order of their first rows. A key is the tuple of encoded partition values
(spec, Appendix D) in the order of the spec's fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowlake.errors import InvalidStatementError, SchemaMismatchError
from rowlake.model.transform import apply_transform
from rowlake.model.values import encode

if TYPE_CHECKING:
    from rowlake.model.partition import PartitionField, PartitionSpec
    from rowlake.model.schema import Schema

Key = tuple["bytes | None", ...]
SMALL = 1 << 16  # codes up to this sort in linear time
LARGE = 1 << 31


@dataclass(frozen=True)
class Codes:
    """One number per row; equal numbers mean equal values. `keys` has the value of each number."""

    rows: np.ndarray
    keys: list[bytes | None]


@dataclass(frozen=True)
class PartitionCodes:
    """One number per row; equal numbers mean the same partition."""

    rows: np.ndarray
    spec: PartitionSpec
    active: list[int]
    coded: list[Codes]

    def first_rows(self) -> np.ndarray:
        """Return a row of each partition."""
        places = np.full(int(self.rows.max()) + 1, -1, np.int64)
        places[self.rows] = np.arange(len(self.rows))
        return places[places >= 0]

    def key(self, row: int) -> Key:
        """Return the partition of a row."""
        key: list[Any] = [None] * len(self.spec.fields)
        for place, each in zip(self.active, self.coded, strict=True):
            key[place] = each.keys[each.rows[row]]
        return tuple(key)


def column_at(batch: pa.RecordBatch, schema: Schema, field_id: int) -> pa.Array:
    """Return the values of a field, also inside structs; null where a struct above is null."""
    path = schema.paths.get(field_id)
    if path is None:
        raise InvalidStatementError(f"The rows to write have no column with field id {field_id}.")
    values = batch.column(batch.schema.get_field_index(path[0]))
    for name in path[1:]:
        values = values.flatten()[values.type.get_field_index(name)]
    return values


def split_by_partition(
    batch: pa.RecordBatch, spec: PartitionSpec, schema: Schema
) -> list[tuple[Key, pa.RecordBatch]]:
    """Split a batch; an unpartitioned spec gives the batch as it is."""
    if spec.is_unpartitioned or not len(batch):
        return [((None,) * len(spec.fields), batch)] if len(batch) else []
    codes = partition_codes(batch, spec, schema)
    return [(codes.key(first), part) for first, part in split_by_number(codes.rows, batch)]


def partition_codes(batch: pa.RecordBatch, spec: PartitionSpec, schema: Schema) -> PartitionCodes:
    """Return a number per row of a batch; the spec has fields that are not void."""
    active = [place for place, field in enumerate(spec.fields) if field.transform != "void"]
    coded = [_codes(batch, spec.fields[place], schema) for place in active]
    return PartitionCodes(_combined(coded), spec, active, coded)


def _codes(batch: pa.RecordBatch, field: PartitionField, schema: Schema) -> Codes:
    source = column_at(batch, schema, field.source_id)
    values = apply_transform(field.transform, source)
    found = values.dictionary_encode(null_encoding="encode")
    _check_precision(found.dictionary, field, schema)
    return Codes(found.indices.to_numpy(), encode(found.dictionary).to_pylist())


def _check_precision(values: pa.Array, field: PartitionField, schema: Schema) -> None:
    """Refuse decimals that truncating, which rounds down, takes out of their type.

    No manifest can hold them; Java's writers refuse them too.
    """
    if not pa.types.is_decimal(values.type) or not field.transform.startswith("truncate"):
        return
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        name = ".".join(schema.paths[field.source_id])
        kind = f"decimal({values.type.precision}, {values.type.scale})"
        raise SchemaMismatchError(
            f"Cannot partition by {field.transform} of {name}: a value near the minimum of {kind} "
            f"is rounded down below it. Widen the type of {name}, or partition by bucket.",
            column=name,
        ) from error


def _combined(coded: list[Codes]) -> np.ndarray:
    """Return one small number per row for all partition fields together."""
    rows, size = coded[0].rows, len(coded[0].keys)
    for each in coded[1:]:
        rows = rows.astype(np.int64) * len(each.keys) + each.rows
        size *= len(each.keys)
        if size > LARGE:
            rows, size = _dense(rows)
    if size > SMALL:
        rows, size = _dense(rows)
    return rows.astype(np.uint16) if size <= SMALL else rows


def _dense(rows: np.ndarray) -> tuple[np.ndarray, int]:
    found, numbers = np.unique(rows, return_inverse=True)
    return numbers.reshape(-1), len(found)


def split_by_number(rows: np.ndarray, batch: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
    """Split a batch by a number per row: (first row, rows) of each; no copy where they come so."""
    changes = np.flatnonzero(rows[1:] != rows[:-1]) + 1
    starts = np.concatenate([[0], changes])
    ends = np.concatenate([changes, [len(rows)]])
    may_be_grouped = len(starts) <= int(rows.max()) + 1
    if may_be_grouped and len(np.unique(rows[starts])) == len(starts):
        return [
            (int(start), batch.slice(start, end - start))
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    cuts = np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, [len(rows)]])
    firsts = order[cuts[:-1]]
    groups: list[tuple[int, pa.RecordBatch]] = []
    for group in np.argsort(firsts).tolist():
        taken = pa.array(order[cuts[group] : cuts[group + 1]])
        # Each group is taken by itself, so that writing it gives its memory back.
        groups.append((int(firsts[group]), batch.take(taken)))
    return groups
