"""Partition statistics: what each partition holds, counted from manifests, and the file of it.

Comes in: entries of manifests by spec, or an older statistics file. Goes out: tables in the layout
`statistics_schema` (spec, Partition Statistics File), one row per partition and spec, in the order
of partitions; and Parquet files of them. Counts are those of entries: files, records, bytes;
`total_record_count` stays null, since only a scan could tell it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rowlake.errors import CorruptTableError
from rowlake.iceberg.manifest_entries import one_array
from rowlake.iceberg.partition_order import joint_ranks, partition_ranks
from rowlake.model.files import Content, Status
from rowlake.model.schema import FIELD_ID, children, field_id, type_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.storage.files import Storage

# name -> (field id, type, required from version)
_COUNTS: dict[str, tuple[int, pa.DataType, int]] = {
    "data_record_count": (3, pa.int64(), 1),
    "data_file_count": (4, pa.int32(), 1),
    "total_data_file_size_in_bytes": (5, pa.int64(), 1),
    "position_delete_record_count": (6, pa.int64(), 3),
    "position_delete_file_count": (7, pa.int32(), 3),
    "equality_delete_record_count": (8, pa.int64(), 3),
    "equality_delete_file_count": (9, pa.int32(), 3),
}
_OTHERS = {
    "total_record_count": 10,
    "last_updated_at": 11,
    "last_updated_snapshot_id": 12,
}
_VECTORS, _VECTORS_ID, _VECTORS_SINCE = "dv_count", 13, 3
_UPDATES = ("last_updated_at", "last_updated_snapshot_id")
MEASURES = (*_COUNTS, _VECTORS)
ENTRY_COLUMNS = (
    "content",
    "file_format",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "snapshot_id",
)


def statistics_schema(partition: pa.StructType, format_version: int) -> pa.Schema:
    """Return the layout of a statistics file; `partition` is the struct of all specs' fields."""
    fields = [_field(1, "partition", partition, required=True)]
    fields.append(_field(2, "spec_id", pa.int32(), required=True))
    for name, (identity, kind, since) in _COUNTS.items():
        fields.append(_field(identity, name, kind, required=format_version >= since))
    fields += [_field(number, name, pa.int64()) for name, number in _OTHERS.items()]
    if format_version >= _VECTORS_SINCE:
        fields.append(_field(_VECTORS_ID, _VECTORS, pa.int32(), required=True))
    return pa.schema(fields)


def _field(identity: int, name: str, kind: pa.DataType, *, required: bool = False) -> pa.Field:
    return pa.field(name, kind, not required, {FIELD_ID: str(identity).encode()})


def no_statistics(partition: pa.StructType) -> pa.Table:
    """Return no rows of statistics, in the layout in which they are counted."""
    counts = [pa.field(name, pa.int64()) for name in MEASURES]
    updates = [pa.field(name, pa.int64()) for name in _UPDATES]
    keys = [pa.field("partition", partition), pa.field("spec_id", pa.int32())]
    return pa.schema([*keys, *counts, *updates]).empty_table()


def entry_statistics(
    entries: pa.Table,
    spec_id: int,
    partition: pa.StructType,
    snapshot_times: Mapping[int, int],
    *,
    changes_only: bool = False,
) -> pa.Table:
    """Return the statistics of the entries of one spec, a row per partition.

    All live files count; a DELETED entry only says when its partition changed. With
    `changes_only` ADDED entries count, DELETED ones count as less, EXISTING ones not at all.
    `snapshot_times` are the times of the snapshots that are kept, in ms by id.
    """
    if changes_only:
        entries = entries.filter(pc.not_equal(entries["status"], int(Status.EXISTING)))
    columns: dict[str, Any] = {
        "partition": in_unified(one_array(entries["partition"]), partition),
        "spec_id": pa.repeat(pa.scalar(spec_id, pa.int32()), entries.num_rows),
        **_measures(entries, changes_only=changes_only),
        **_updates(entries["snapshot_id"], snapshot_times),
    }
    return combined(pa.table(columns, schema=no_statistics(partition).schema))


def _measures(entries: pa.Table, *, changes_only: bool) -> dict[str, np.ndarray]:
    is_deleted = np.asarray(pc.equal(entries["status"], int(Status.DELETED)))
    sign = np.where(is_deleted, -1 if changes_only else 0, 1).astype(np.int64)
    content = np.asarray(entries["content"])
    is_vector = np.asarray(pc.equal(entries["file_format"], "PUFFIN"))
    rows = np.asarray(entries["record_count"]) * sign
    data = content == Content.DATA
    positions, equality = content == Content.POSITION_DELETES, content == Content.EQUALITY_DELETES
    return {
        "data_record_count": rows * data,
        "data_file_count": sign * data,
        "total_data_file_size_in_bytes": np.asarray(entries["file_size_in_bytes"]) * sign * data,
        "position_delete_record_count": rows * positions,
        "position_delete_file_count": sign * (positions & ~is_vector),
        "equality_delete_record_count": rows * equality,
        "equality_delete_file_count": sign * equality,
        _VECTORS: sign * (positions & is_vector),
    }


def _updates(snapshot_ids: pa.ChunkedArray, times: Mapping[int, int]) -> dict[str, pa.Array]:
    known = pa.array(sorted(times), pa.int64())
    places = pc.index_in(one_array(snapshot_ids), known)
    when = pa.array([times[one] for one in known.to_pylist()], pa.int64())
    return {
        "last_updated_at": when.take(places),
        "last_updated_snapshot_id": known.take(places),
    }


def in_unified(partitions: pa.StructArray, unified: pa.StructType) -> pa.StructArray:
    """Return partitions with the fields of all specs, found by id; others' fields are null."""
    own = {
        field_id(part): values
        for part, values in zip(children(partitions.type), partitions.flatten(), strict=True)
    }
    columns = []
    for part in children(unified):
        values = own.get(field_id(part))
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        columns.append(
            pa.nulls(len(partitions), part.type) if values is None else values.cast(part.type)
        )
    return pa.StructArray.from_arrays(columns, fields=children(unified))


def combined(rows: pa.Table) -> pa.Table:
    """Return one row per partition and spec, in order: counts added up, the latest update kept."""
    if not rows.num_rows:
        return rows
    keys = [*partition_ranks(rows["partition"]), np.asarray(rows["spec_id"])]
    groups = joint_ranks(keys)
    times = np.asarray(pc.fill_null(rows["last_updated_at"], -1))
    order = np.lexsort([times, groups])  # within a partition the latest comes last
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    latest = pa.array(np.append(starts[1:], len(order)) - 1)
    kept = rows.take(pa.array(order).take(latest))
    for name in MEASURES:
        sums = np.add.reduceat(np.asarray(rows[name])[order], starts)
        kept = kept.set_column(kept.schema.get_field_index(name), name, pa.array(sums, pa.int64()))
    return kept


def write_statistics(rows: pa.Table, schema: pa.Schema) -> bytes:
    """Return a Parquet file of statistics."""
    columns = []
    for field in schema:
        if field.name == "partition":
            columns.append(_stored(one_array(rows["partition"])))
        elif field.name in rows.column_names:
            columns.append(one_array(rows[field.name]).cast(field.type))
        else:
            columns.append(pa.nulls(rows.num_rows, field.type))
    fields = [field.with_type(column.type) for field, column in zip(schema, columns, strict=True)]
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table(columns, schema=pa.schema(fields)),
        sink,
        compression="zstd",
        store_schema=False,
        store_decimal_as_integer=True,
    )
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _stored(partitions: pa.StructArray) -> pa.StructArray:
    """Return partitions as a file stores them: ids only, uuids typed."""
    fields, columns = [], []
    for part, values in zip(children(partitions.type), partitions.flatten(), strict=True):
        if type_name(part) == "uuid":
            values = pa.ExtensionArray.from_storage(pa.uuid(), values)
        fields.append(pa.field(part.name, values.type, True, {FIELD_ID: part.metadata[FIELD_ID]}))
        columns.append(values)
    return pa.StructArray.from_arrays(columns, fields=fields)


def read_statistics(location: str, partition: pa.StructType, storage: Storage) -> pa.Table:
    """Return the rows of a statistics file, columns found by id; raises CorruptTableError."""
    with storage.open_input(location) as stream:
        try:
            found = pq.read_table(stream)
        except (pa.ArrowException, OSError) as error:
            raise CorruptTableError(location, f"it is no Parquet file ({error})") from error
    try:
        return _rows_in(found, location, partition)
    except (pa.ArrowException, KeyError) as error:
        raise CorruptTableError(location, f"it holds other columns ({error})") from error


def _rows_in(found: pa.Table, location: str, partition: pa.StructType) -> pa.Table:
    held = {field_id(field): one_array(found[field.name]) for field in found.schema}
    if 1 not in held or 2 not in held or not pa.types.is_struct(held[1].type):
        raise CorruptTableError(location, "it has no partitions")
    ids = {name: number for name, (number, _, _) in _COUNTS.items()} | {_VECTORS: _VECTORS_ID}
    columns = {"partition": in_unified(held[1], partition), "spec_id": held[2].cast(pa.int32())}
    for name, number in ids.items():
        values = held.get(number, pa.nulls(found.num_rows, pa.int64()))
        columns[name] = pc.fill_null(values.cast(pa.int64()), 0)
    for name in _UPDATES:
        values = held.get(_OTHERS[name], pa.nulls(found.num_rows, pa.int64()))
        columns[name] = values.cast(pa.int64())
    return pa.table(columns, schema=no_statistics(partition).schema)
