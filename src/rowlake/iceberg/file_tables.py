"""Metadata tables of files: files, entries, partitions, and their variants.

Comes in: manifests. Goes out: Arrow tables with the columns of Iceberg's Spark metadata tables
(`DataFile.getType`, `ManifestEntry`, `PartitionsTable`), one row per file, entry or partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.iceberg.manifest_reader import read_manifests
from rowlake.iceberg.readable_metrics import readable_metrics
from rowlake.model.files import files_schema
from rowlake.model.properties import MOST
from rowlake.model.unified_partition import in_unified_partition, unified_partition_type

if TYPE_CHECKING:
    from rowlake.model.handle import TableHandle
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage

# name -> (content of the manifests: 0 data, 1 deletes, None both)
_FILES = {
    "files": None,
    "data_files": 0,
    "delete_files": 1,
    "all_files": None,
    "all_data_files": 0,
    "all_delete_files": 1,
}
FILE_TABLES = frozenset({*_FILES, "entries", "all_entries", "partitions"})

_COLUMNS = (
    "content",
    "location",
    "file_format",
    "spec_id",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
    "key_metadata",
    "split_offsets",
    "equality_ids",
    "sort_order_id",
    "first_row_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)


def file_table(
    name: str, handle: TableHandle, view: TableView, manifests: pa.Table, storage: Storage
) -> pa.Table:
    """Return one of `FILE_TABLES` from these manifests."""
    content = _FILES.get(name)
    if content is not None:
        manifests = manifests.filter(pc.equal(manifests["content"], content))
    entries = _entries(view, manifests, storage, live_only=not name.endswith("entries"))
    if name == "partitions":
        return _partitions(handle, view, entries)
    return _entry_rows(entries, view) if name.endswith("entries") else _file_rows(entries, view)


def _entries(
    view: TableView, manifests: pa.Table, storage: Storage, *, live_only: bool
) -> pa.Table:
    unified = unified_partition_type(view)
    found = read_manifests(manifests, view, storage, live_only=live_only)
    parts = [files_schema(unified).empty_table()]
    parts += [
        in_unified_partition(entries, view, spec_id, unified) for spec_id, entries in found.items()
    ]
    return pa.concat_tables(parts)


def _file_columns(entries: pa.Table) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name in _COLUMNS:
        if name == "partition" and not entries.schema.field("partition").type.num_fields:
            continue
        values = entries[name]
        if name == "content":
            values = values.cast(pa.int32())
        columns["file_path" if name == "location" else name] = values
    return columns


def _file_rows(entries: pa.Table, view: TableView) -> pa.Table:
    columns = _file_columns(entries)
    return pa.table({**columns, "readable_metrics": readable_metrics(entries, view.schema)})


def _entry_rows(entries: pa.Table, view: TableView) -> pa.Table:
    columns = {name: _one(values) for name, values in _file_columns(entries).items()}
    data_file = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    return pa.table(
        {
            "status": entries["status"].cast(pa.int32()),
            "snapshot_id": entries["snapshot_id"],
            "sequence_number": entries["data_sequence_number"],
            "file_sequence_number": entries["file_sequence_number"],
            "data_file": data_file,
            "readable_metrics": readable_metrics(entries, view.schema),
        }
    )


def _one(values: Any) -> pa.Array:
    combined = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def _partitions(handle: TableHandle, view: TableView, entries: pa.Table) -> pa.Table:
    """Return one row per partition, with counts of its data and delete files."""
    rows: dict[Any, dict[str, Any]] = {}
    times = {found.snapshot_id: found.timestamp_ms for found in handle.snapshots}
    wanted = ["partition", "spec_id", "content", "record_count", "file_size_in_bytes"]
    for entry in entries.select([*wanted, "snapshot_id"]).to_pylist():
        key = repr(entry["partition"])
        row = rows.setdefault(key, _no_partition(entry))
        _count(row, entry, times)
    unified = unified_partition_type(view)
    is_partitioned = unified.num_fields > 0
    fields = [("partition", unified), ("spec_id", pa.int32())] if is_partitioned else []
    schema = pa.schema(
        [
            *fields,
            ("record_count", pa.int64()),
            ("file_count", pa.int32()),
            ("total_data_file_size_in_bytes", pa.int64()),
            ("position_delete_record_count", pa.int64()),
            ("position_delete_file_count", pa.int32()),
            ("equality_delete_record_count", pa.int64()),
            ("equality_delete_file_count", pa.int32()),
            ("last_updated_at", pa.timestamp("us", "UTC")),
            ("last_updated_snapshot_id", pa.int64()),
        ]
    )
    listed = list(rows.values()) or ([] if is_partitioned else [_no_partition({})])
    return pa.Table.from_pylist([_in(schema, row) for row in listed], schema)


def _in(schema: pa.Schema, row: dict[str, Any]) -> dict[str, Any]:
    # Sizes and counts are what manifests say; sums of false ones may be larger than any number.
    return {
        name: min(row[name], MOST) if isinstance(row[name], int) else row[name]
        for name in schema.names
    }


def _no_partition(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "partition": entry.get("partition"),
        "spec_id": entry.get("spec_id", 0),
        "record_count": 0,
        "file_count": 0,
        "total_data_file_size_in_bytes": 0,
        "position_delete_record_count": 0,
        "position_delete_file_count": 0,
        "equality_delete_record_count": 0,
        "equality_delete_file_count": 0,
        "last_updated_at": None,
        "last_updated_snapshot_id": None,
    }


_COUNTED = {
    0: ("record_count", "file_count"),
    1: ("position_delete_record_count", "position_delete_file_count"),
    2: ("equality_delete_record_count", "equality_delete_file_count"),
}


def _count(row: dict[str, Any], entry: dict[str, Any], times: dict[int, int]) -> None:
    rows, files = _COUNTED[entry["content"]]
    row[rows] += entry["record_count"]
    row[files] += 1
    if entry["content"] == 0:
        row["total_data_file_size_in_bytes"] += entry["file_size_in_bytes"]
        row["spec_id"] = max(row["spec_id"], entry["spec_id"])
    committed = times.get(entry["snapshot_id"])
    updated = None if committed is None else committed * 1000
    if updated is not None and (row["last_updated_at"] is None or updated > row["last_updated_at"]):
        row["last_updated_at"] = updated
        row["last_updated_snapshot_id"] = entry["snapshot_id"]
