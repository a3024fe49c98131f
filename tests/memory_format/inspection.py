"""What a table in memory tells about itself, with the columns that Iceberg's tables have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import InvalidStatementError
from rowlake.model.files import file_fields, files_schema
from rowlake.model.format import FileAction
from rowlake.model.unified_partition import in_unified_partition, unified_partition_type
from tests.memory_format.files import each_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.model.view import TableView
    from tests.memory_format.handle import MemoryHandle
    from tests.memory_format.state import Files, SnapshotFiles

TIME = pa.timestamp("ms", "UTC")
REMOVED = (FileAction.REMOVED_DATA, FileAction.REMOVED_DELETES)


def metadata_table(handle: MemoryHandle, name: str, view: TableView) -> pa.Table:
    """Return a metadata table by its name."""
    wanted = name.lower()
    if wanted in _OF_TABLE:
        return _OF_TABLE[wanted](handle)
    kind = wanted.removeprefix("all_")
    if kind not in ("files", "data_files", "delete_files", "entries"):
        raise InvalidStatementError(f"A table in memory has no metadata table {name}.")
    ids = list(handle.table.files) if kind != wanted else [view.snapshot_id]
    found = [handle.table.files[one] for one in ids if one is not None]
    every = _entries([files for one in found for files in _chosen(one, kind)], view)
    return _entry_rows(every) if kind == "entries" else _file_rows(each_once(every))


def _chosen(files: SnapshotFiles, kind: str) -> Iterator[Files]:
    if kind != "delete_files":
        yield files.data
    if kind != "data_files":
        yield files.deletes
    if kind == "entries":
        yield from (files.actions[action] for action in REMOVED)


def _entries(parts: list[Files], view: TableView) -> pa.Table:
    unified = unified_partition_type(view)
    found = [
        in_unified_partition(table, view, spec_id, unified)
        for files in parts
        for spec_id, table in files.items()
    ]
    return pa.concat_tables([files_schema(unified).empty_table(), *found])


def _file_rows(entries: pa.Table) -> pa.Table:
    names = [field.name for field in file_fields(pa.null())]
    if not entries.schema.field("partition").type.num_fields:
        names.remove("partition")
    shown = entries.select(names)
    return shown.rename_columns(["file_path" if one == "location" else one for one in names])


def _entry_rows(entries: pa.Table) -> pa.Table:
    files = _file_rows(entries)
    columns = [one.combine_chunks() for one in files.columns]
    return pa.table(
        {
            "status": entries["status"].cast(pa.int32()),
            "snapshot_id": entries["snapshot_id"],
            "sequence_number": entries["data_sequence_number"],
            "file_sequence_number": entries["file_sequence_number"],
            "data_file": pa.StructArray.from_arrays(columns, names=files.column_names),
        }
    )


def _snapshots(handle: MemoryHandle) -> pa.Table:
    found = handle.snapshots
    return pa.table(
        {
            "committed_at": pa.array([one.timestamp_ms for one in found], pa.int64()).cast(TIME),
            "snapshot_id": pa.array([one.snapshot_id for one in found], pa.int64()),
            "parent_id": pa.array([one.parent_id for one in found], pa.int64()),
            "operation": pa.array([one.operation for one in found], pa.string()),
        }
    )


def _history(handle: MemoryHandle) -> pa.Table:
    current = {one.snapshot_id for one in handle.ancestors(handle.current_snapshot_id)}
    times, ids = zip(*handle.table.log, strict=True) if handle.table.log else ((), ())
    return pa.table(
        {
            "made_current_at": pa.array(times, pa.int64()).cast(TIME),
            "snapshot_id": pa.array(ids, pa.int64()),
            "is_current_ancestor": pa.array([one in current for one in ids], pa.bool_()),
        }
    )


def _refs(handle: MemoryHandle) -> pa.Table:
    found = handle.refs.values()
    return pa.table(
        {
            "name": pa.array(list(handle.refs), pa.string()),
            "type": pc.utf8_upper(pa.array([one.kind for one in found], pa.string())),
            "snapshot_id": pa.array([one.snapshot_id for one in found], pa.int64()),
        }
    )


_OF_TABLE = {"snapshots": _snapshots, "history": _history, "refs": _refs}
