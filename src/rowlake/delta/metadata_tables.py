"""What a Delta table tells about itself: history, snapshots, files, partitions, refs.

`snapshots`, `files`, `partitions` and `refs` have the columns that Iceberg's metadata tables have;
`history` has those of Delta's DESCRIBE HISTORY.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.delta.listing import SPEC_ID, LogListing
from rowlake.delta.log_files import MOST_VERSION
from rowlake.errors import InvalidStatementError
from rowlake.model.files import Content, file_fields
from rowlake.model.history_rows import TEXTS, time_of
from rowlake.model.predicate import TRUE
from rowlake.secrets import redacted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rowlake.delta.handle import DeltaHandle
    from rowlake.delta.view import DeltaView
    from rowlake.model.view import SnapshotInfo

TIME = pa.timestamp("us", "UTC")
_JOB = pa.struct([(name, pa.string()) for name in ("jobId", "jobName", "jobRunId", "runId")])
_NOTEBOOK = pa.struct([("notebookId", pa.string())])
HISTORY = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", TIME),
        ("userId", pa.string()),
        ("userName", pa.string()),
        ("operation", pa.string()),
        ("operationParameters", TEXTS),
        ("job", _JOB),
        ("notebook", _NOTEBOOK),
        ("clusterId", pa.string()),
        ("readVersion", pa.int64()),
        ("isolationLevel", pa.string()),
        ("isBlindAppend", pa.bool_()),
        ("operationMetrics", TEXTS),
        ("userMetadata", pa.string()),
        ("engineInfo", pa.string()),
    ]
)


def metadata_table(handle: DeltaHandle, name: str, view: Callable[[], DeltaView]) -> pa.Table:
    """Return a metadata table by its name."""
    wanted = name.lower()
    if wanted in _OF_TABLE:
        return _OF_TABLE[wanted](handle)
    if wanted in _OF_VIEW:
        return _OF_VIEW[wanted](view())
    known = ", ".join(sorted([*_OF_TABLE, *_OF_VIEW]))
    raise InvalidStatementError(
        f"Unknown metadata table {name} of a Delta table (expected one of: {known})."
    )


def history(handle: DeltaHandle, limit: int | None = None) -> pa.Table:
    """Return the commits that the log still has, newest first."""
    versions = [one for one in handle.times.versions if one in handle.log.commits]
    newest = versions[::-1] if limit is None else versions[::-1][:limit]
    return pa.Table.from_pylist([_history_row(handle, one) for one in newest], HISTORY)


def _history_row(handle: DeltaHandle, version: int) -> dict[str, Any]:
    commit = handle.times.read(version)
    info = commit.other.commit_info or {}
    return {
        "version": version,
        "timestamp": time_of(handle.times.of_commit(commit)),
        "operationParameters": _texts(info.get("operationParameters")),
        "operationMetrics": _texts(info.get("operationMetrics")),
        "readVersion": _typed(info.get("readVersion"), int),
        "isBlindAppend": _typed(info.get("isBlindAppend"), bool),
        "job": _struct(info.get("job"), _JOB),
        "notebook": _struct(info.get("notebook"), _NOTEBOOK),
        **{name: _typed(info.get(name), str) for name in _TEXT_COLUMNS},
    }


_TEXT_COLUMNS = [one.name for one in HISTORY if one.type == pa.string()]


def _typed(value: Any, kind: type) -> Any:
    """Return a value of this type, None for all others."""
    if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
        return None
    return None if isinstance(value, int) and abs(value) >= MOST_VERSION else value


def _texts(values: Any) -> list[tuple[str, str]] | None:
    """Return a map of texts, secrets hidden; what is no text is shown as JSON."""
    if not isinstance(values, dict):
        return None
    shown = {
        str(key): one if isinstance(one, str) else json.dumps(one) for key, one in values.items()
    }
    return list(redacted(shown).items())


def _struct(value: Any, kind: pa.StructType) -> dict[str, str | None] | None:
    if not isinstance(value, dict):
        return None
    return {field.name: _typed(value.get(field.name), str) for field in kind}


def _history(handle: DeltaHandle) -> pa.Table:
    return history(handle)


def _snapshots(handle: DeltaHandle) -> pa.Table:
    found = handle.snapshots
    return pa.table(
        {
            "committed_at": pa.array([time_of(one.timestamp_ms) for one in found], TIME),
            "snapshot_id": pa.array([one.snapshot_id for one in found], pa.int64()),
            "parent_id": pa.array([one.parent_id for one in found], pa.int64()),
            "operation": pa.array([one.operation for one in found], pa.string()),
            "manifest_list": pa.nulls(len(found), pa.string()),
            "summary": pa.array([_summary(one) for one in found], TEXTS),
        }
    )


def _summary(snapshot: SnapshotInfo) -> list[tuple[str, str]]:
    return list(redacted(snapshot.summary).items())


def _refs(handle: DeltaHandle) -> pa.Table:
    found: Mapping[str, Any] = handle.refs
    return pa.table(
        {
            "name": pa.array(list(found), pa.string()),
            "type": pa.array([one.kind.upper() for one in found.values()], pa.string()),
            "snapshot_id": pa.array([one.snapshot_id for one in found.values()], pa.int64()),
        }
    )


def _files(view: DeltaView) -> pa.Table:
    return pa.concat_tables([_data_files(view), _delete_files(view)])


def _data_files(view: DeltaView) -> pa.Table:
    return _shown(LogListing(view, TRUE).data()[SPEC_ID])


def _delete_files(view: DeltaView) -> pa.Table:
    return _shown(LogListing(view, TRUE).deletes()[SPEC_ID])


def _shown(entries: pa.Table) -> pa.Table:
    names = [field.name for field in file_fields(pa.null())]
    if not entries.schema.field("partition").type.num_fields:
        names.remove("partition")
    found = entries.select(names).rename_columns(
        ["file_path" if name == "location" else name for name in names]
    )
    content = found["content"].cast(pa.int32())
    return found.set_column(0, pa.field("content", pa.int32()), content)


def _partitions(view: DeltaView) -> pa.Table:
    """Return one row per partition; the whole table is one where it is not partitioned."""
    listing = LogListing(view, TRUE)
    wanted = ["content", "partition", "record_count", "file_size_in_bytes"]
    every = pa.concat_tables([listing.data(wanted)[SPEC_ID], listing.deletes(wanted)[SPEC_ID]])
    kind = every.schema.field("partition").type
    keys = [_key(at) for at in range(kind.num_fields)]
    numbers = _partition_numbers(every)
    values = every["partition"].combine_chunks().flatten()
    flat = pa.table([*values, *numbers.values()], names=[*keys, *numbers])
    grouped = flat.group_by(keys).aggregate([(name, "sum") for name in numbers])
    found = {name: grouped[f"{name}_sum"] for name in numbers}
    if not keys:
        return pa.table(found)
    columns = [grouped[key].combine_chunks() for key in keys]
    partition = pa.StructArray.from_arrays(columns, fields=list(kind))
    spec_ids = pa.repeat(pa.scalar(SPEC_ID, pa.int32()), len(partition))
    return pa.table({"partition": partition, "spec_id": spec_ids, **found})


def _partition_numbers(files: pa.Table) -> dict[str, pa.Array | pa.ChunkedArray]:
    """Return what of each file is added up over its partition."""
    is_data = pc.equal(files["content"], int(Content.DATA))
    rows, size = files["record_count"], files["file_size_in_bytes"]
    return {
        "record_count": pc.if_else(is_data, rows, 0),
        "file_count": is_data.cast(pa.int32()),
        "total_data_file_size_in_bytes": pc.if_else(is_data, size, 0),
        "position_delete_record_count": pc.if_else(is_data, 0, rows),
        "position_delete_file_count": pc.invert(is_data).cast(pa.int32()),
    }


def _key(position: int) -> str:
    return f"key-{position}"


_OF_TABLE: Mapping[str, Callable[[DeltaHandle], pa.Table]] = {
    "history": _history,
    "snapshots": _snapshots,
    "refs": _refs,
}
_OF_VIEW: Mapping[str, Callable[[DeltaView], pa.Table]] = {
    "files": _files,
    "data_files": _data_files,
    "delete_files": _delete_files,
    "partitions": _partitions,
}
