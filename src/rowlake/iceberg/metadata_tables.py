"""Metadata tables: snapshots, history, files, partitions, … as Arrow tables.

Comes in: a table handle and the name of a metadata table. Goes out: its rows, with the names,
types and order of columns that Iceberg's Spark metadata tables have. Reads metadata only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import CorruptTableError, InvalidStatementError, UnsupportedFeatureError
from rowlake.iceberg.file_tables import FILE_TABLES, file_table
from rowlake.iceberg.manifest_list import read_manifest_list
from rowlake.model.files import MANIFESTS
from rowlake.model.human import human_text
from rowlake.model.schema import type_name
from rowlake.model.transform import partition_type
from rowlake.model.values import decode
from rowlake.secrets import redacted
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.catalog.handle import IcebergHandle
    from rowlake.model.partition import PartitionSpec
    from rowlake.model.view import TableView

TIME = pa.timestamp("us", "UTC")


def metadata_table(
    handle: IcebergHandle, name: str, *, snapshot_id: int | None = None, ref: str | None = None
) -> pa.Table:
    """Return a metadata table by its name, at a snapshot where that means something."""
    wanted = name.lower()
    if wanted in _OF_TABLE:
        return _OF_TABLE[wanted](handle)
    view = handle.view(snapshot_id=snapshot_id, ref=ref)
    storage = Storage(view.io_properties)
    if wanted == "manifests":
        return _manifests_table(_manifests_of(view, storage), view)
    if wanted == "all_manifests":
        return _all_manifests(handle, view, storage)
    if wanted == "changes":
        raise UnsupportedFeatureError(
            f"The changes of {view.name} are not metadata. Read them with changes() of the table, "
            "or with SELECT … FROM table_changes(…)."
        )
    if wanted in FILE_TABLES:
        is_all = wanted.startswith("all_")
        manifests = _every_manifest(handle, storage) if is_all else _manifests_of(view, storage)
        return file_table(wanted, handle, view, manifests, storage)
    raise InvalidStatementError(
        f"Unknown metadata table {name} (expected one of: {', '.join(sorted(METADATA_TABLES))})."
    )


def _manifests_of(view: TableView, storage: Storage) -> pa.Table:
    if view.snapshot is None or view.snapshot.manifest_list is None:
        return MANIFESTS.empty_table()
    return read_manifest_list(view.snapshot.manifest_list, storage)


def _every_manifest(handle: IcebergHandle, storage: Storage) -> pa.Table:
    """Return the manifests of all snapshots, each once."""
    lists = [
        read_manifest_list(snapshot.manifest_list, storage)
        for snapshot in handle.snapshots
        if snapshot.manifest_list
    ]
    every = pa.concat_tables([MANIFESTS.empty_table(), *lists])
    first = every.append_column("row", pa.array(range(every.num_rows), pa.int64()))
    kept = first.group_by("location").aggregate([("row", "min")])["row_min"]
    return every.take(pc.take(kept, pc.sort_indices(kept)))


def _snapshots(handle: IcebergHandle) -> pa.Table:
    found = handle.snapshots
    return pa.table(
        {
            "committed_at": _times([snapshot.timestamp_ms for snapshot in found]),
            "snapshot_id": pa.array([snapshot.snapshot_id for snapshot in found], pa.int64()),
            "parent_id": pa.array([snapshot.parent_id for snapshot in found], pa.int64()),
            "operation": pa.array([snapshot.operation for snapshot in found], pa.string()),
            "manifest_list": pa.array([snapshot.manifest_list for snapshot in found], pa.string()),
            "summary": pa.array(
                [list(redacted(snapshot.summary).items()) for snapshot in found],
                pa.map_(pa.string(), pa.string()),
            ),
        }
    )


def _times(milliseconds: list[int]) -> pa.Array:
    return pc.multiply(pa.array(milliseconds, pa.int64()), 1000).cast(TIME)


def _history(handle: IcebergHandle) -> pa.Table:
    metadata = handle.metadata
    log = metadata.snapshot_log
    current = {one.snapshot_id for one in handle.ancestors(handle.current_snapshot_id)}
    found = [handle.snapshot(entry.snapshot_id) for entry in log]
    return pa.table(
        {
            "made_current_at": _times([entry.timestamp_ms for entry in log]),
            "snapshot_id": pa.array([entry.snapshot_id for entry in log], pa.int64()),
            "parent_id": pa.array(
                [snapshot.parent_id if snapshot else None for snapshot in found],
                pa.int64(),
            ),
            "is_current_ancestor": pa.array(
                [entry.snapshot_id in current for entry in log], pa.bool_()
            ),
        }
    )


def _refs(handle: IcebergHandle) -> pa.Table:
    refs = handle.refs
    found = list(refs.values())
    return pa.table(
        {
            "name": pa.array(list(refs), pa.string()),
            "type": pa.array([ref.kind.upper() for ref in found], pa.string()),
            "snapshot_id": pa.array([ref.snapshot_id for ref in found], pa.int64()),
            "max_reference_age_in_ms": pa.array([ref.max_ref_age_ms for ref in found], pa.int64()),
            "min_snapshots_to_keep": pa.array(
                [ref.min_snapshots_to_keep for ref in found], pa.int32()
            ),
            "max_snapshot_age_in_ms": pa.array(
                [ref.max_snapshot_age_ms for ref in found], pa.int64()
            ),
        }
    )


def _metadata_log_entries(handle: IcebergHandle) -> pa.Table:
    metadata = handle.metadata
    log = [(entry.timestamp_ms, entry.metadata_file) for entry in metadata.metadata_log]
    log.append((metadata.last_updated_ms, handle.metadata_location or ""))
    newest = []
    for timestamp, _ in log:
        current = [entry for entry in metadata.snapshot_log if entry.timestamp_ms <= timestamp]
        newest.append(handle.snapshot(current[-1].snapshot_id) if current else None)
    return pa.table(
        {
            "timestamp": _times([timestamp for timestamp, _ in log]),
            "file": pa.array([location for _, location in log], pa.string()),
            "latest_snapshot_id": pa.array(
                [snapshot.snapshot_id if snapshot else None for snapshot in newest], pa.int64()
            ),
            "latest_schema_id": pa.array(
                [snapshot.schema_id if snapshot else None for snapshot in newest], pa.int32()
            ),
            "latest_sequence_number": pa.array(
                [snapshot.sequence_number if snapshot else None for snapshot in newest], pa.int64()
            ),
        }
    )


def _manifests_table(manifests: pa.Table, view: TableView) -> pa.Table:
    is_data = pc.equal(manifests["content"], 0)
    zeros = pa.repeat(pa.scalar(0, pa.int32()), manifests.num_rows)
    counts = {}
    for kind, mask in (("data", is_data), ("delete", pc.invert(is_data))):
        for status in ("added", "existing", "deleted"):
            counts[f"{status}_{kind}_files_count"] = pc.if_else(
                mask, manifests[f"{status}_files_count"], zeros
            )
    return pa.table(
        {
            "content": manifests["content"].cast(pa.int32()),
            "path": manifests["location"],
            "length": manifests["manifest_length"],
            "partition_spec_id": manifests["partition_spec_id"],
            "added_snapshot_id": manifests["added_snapshot_id"],
            **counts,
            "partition_summaries": _summaries(manifests, view),
        }
    )


def _summaries(manifests: pa.Table, view: TableView) -> pa.Array:
    rows = []
    for row in manifests.select(["location", "partitions", "partition_spec_id"]).to_pylist():
        spec = view.specs.get(row["partition_spec_id"])
        if spec is None:
            cause = f"it is of partition spec {row['partition_spec_id']}, which the table has not"
            raise CorruptTableError(row["location"], cause)
        rows.append(_readable(row["partitions"] or [], spec, view))
    element = pa.struct(
        [
            pa.field("contains_null", pa.bool_(), nullable=False),
            pa.field("contains_nan", pa.bool_()),
            pa.field("lower_bound", pa.string()),
            pa.field("upper_bound", pa.string()),
        ]
    )
    return pa.array(rows, pa.list_(pa.field("element", element, nullable=False)))


def _readable(
    summaries: list[dict[str, Any]], spec: PartitionSpec, view: TableView
) -> list[dict[str, Any]]:
    types = partition_type(spec, view.schema, view.schemas.values())
    rows = []
    for summary, field, described in zip(summaries, types, spec.fields, strict=False):
        bounds = {
            name: _bound_text(summary[name], field, described.transform)
            for name in ("lower_bound", "upper_bound")
        }
        rows.append({**summary, **bounds})
    return rows


def _bound_text(encoded: bytes | None, field: pa.Field, transform: str) -> str | None:
    if encoded is None:
        return None
    value = decode(pa.array([encoded], pa.binary()), field.type)[0]
    return human_text(transform, value, is_uuid=type_name(field) == "uuid")


def _all_manifests(handle: IcebergHandle, view: TableView, storage: Storage) -> pa.Table:
    """Return the manifests of every snapshot, a row for each snapshot that refers to one."""
    parts = []
    for snapshot in handle.snapshots:
        if snapshot.manifest_list:
            listed = read_manifest_list(snapshot.manifest_list, storage)
            rows = _manifests_table(listed, view)
            reference = pa.repeat(pa.scalar(snapshot.snapshot_id, pa.int64()), rows.num_rows)
            rows = rows.append_column("reference_snapshot_id", reference)
            parts.append(rows.append_column("key_metadata", listed["key_metadata"]))
    if not parts:
        empty = _manifests_table(MANIFESTS.empty_table(), view)
        empty = empty.append_column("reference_snapshot_id", pa.array([], pa.int64()))
        return empty.append_column("key_metadata", pa.array([], pa.binary()))
    return pa.concat_tables(parts)


_OF_TABLE: dict[str, Callable[[IcebergHandle], pa.Table]] = {
    "snapshots": _snapshots,
    "history": _history,
    "refs": _refs,
    "metadata_log_entries": _metadata_log_entries,
}
METADATA_TABLES = frozenset(
    {*_OF_TABLE, "manifests", "all_manifests", "position_deletes", *FILE_TABLES}
)
