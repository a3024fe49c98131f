"""What history says of a commit: Delta's operation, parameters and metrics for a change.

DESCRIBE HISTORY of every engine shows these, so the names are those of Delta on Spark. What rowlake
counts beside them (rows updated, batches of streams, properties that users gave) goes in `tags`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from rowlake.model.change import Operation
from rowlake.model.predicate import TRUE
from rowlake.model.predicate_text import predicate_text

if TYPE_CHECKING:
    import pyarrow as pa

    from rowlake.delta.metadata import Metadata
    from rowlake.model.change import Change

USER_METADATA = "userMetadata"
_ROWS = "rowlake.rows-"


@dataclass(frozen=True)
class Told:
    """What a commit says of itself."""

    operation: str
    parameters: dict[str, Any]
    metrics: dict[str, int]


@dataclass(frozen=True)
class FileCounts:
    """What a commit does to files: live ones that go, and live ones that get another vector."""

    removed: pa.Table
    removed_rows: int
    vectors_added: int = 0
    vectors_removed: int = 0


def told_of(change: Change, metadata: Metadata, counts: FileCounts) -> Told:
    """Return how history tells of a change of files."""
    kind = _KINDS.get(change.verb, _other)
    return kind(change, metadata, counts)


def _write(change: Change, metadata: Metadata, counts: FileCounts) -> Told:
    mode = "Append" if change.operation is Operation.APPEND else "Overwrite"
    parameters: dict[str, Any] = {"mode": mode, "partitionBy": list(metadata.partition_columns)}
    if change.remove_where is not None and change.remove_where != TRUE:
        parameters["predicate"] = predicate_text(change.remove_where)
    if change.replaced_partitions:
        parameters["isDynamicPartitionOverwrite"] = True
    return Told("WRITE", parameters, {**_output(change), **_removed(counts)})


def _create(change: Change, metadata: Metadata, _counts: FileCounts) -> Told:
    parameters = {
        "partitionBy": list(metadata.partition_columns),
        "properties": dict(metadata.configuration),
        "description": metadata.description,
        "isManaged": False,
    }
    return Told("CREATE TABLE AS SELECT", parameters, _output(change))


def _delete(change: Change, _metadata: Metadata, counts: FileCounts) -> Told:
    copied = _rows(change.added_data)
    metrics = {
        **_files(change, counts),
        "numDeletedRows": _counted(change, "deleted", counts.removed_rows),
        "numCopiedRows": copied,
    }
    return Told("DELETE", _predicate(change), metrics)


def _update(change: Change, _metadata: Metadata, counts: FileCounts) -> Told:
    updated = _counted(change, "updated", 0)
    metrics = {
        **_files(change, counts),
        "numUpdatedRows": updated,
        "numCopiedRows": max(_rows(change.added_data) - updated, 0),
    }
    return Told("UPDATE", _predicate(change), metrics)


def _merge(change: Change, _metadata: Metadata, counts: FileCounts) -> Told:
    inserted, updated = _counted(change, "inserted", 0), _counted(change, "updated", 0)
    written = _rows(change.added_data)
    metrics = {
        "numTargetRowsInserted": inserted,
        "numTargetRowsUpdated": updated,
        "numTargetRowsDeleted": _counted(change, "deleted", 0),
        "numTargetRowsCopied": max(written - inserted - updated, 0),
        "numOutputRows": written,
        "numTargetFilesAdded": change.added_data.num_rows,
        "numTargetFilesRemoved": counts.removed.num_rows,
        "numTargetBytesAdded": _bytes(change.added_data, "file_size_in_bytes"),
        "numTargetBytesRemoved": _bytes(counts.removed, "size"),
        "numTargetDeletionVectorsAdded": counts.vectors_added,
        "numTargetDeletionVectorsRemoved": counts.vectors_removed,
        **_change_files(change, "numTargetChangeFilesAdded"),
    }
    return Told("MERGE", _predicate(change), metrics)


def _truncate(_change: Change, _metadata: Metadata, counts: FileCounts) -> Told:
    return Told("TRUNCATE", {}, _removed(counts))


def _optimize(change: Change, _metadata: Metadata, counts: FileCounts) -> Told:
    return Told("OPTIMIZE", {"predicate": "[]", "auto": False}, _files(change, counts))


def _convert(change: Change, metadata: Metadata, _counts: FileCounts) -> Told:
    parameters = {
        "numFiles": change.added_data.num_rows,
        "partitionedBy": list(metadata.partition_columns),
        "collectStats": change.added_data["value_counts"].null_count == 0,
        "sourceFormat": "parquet",
    }
    return Told("CONVERT", parameters, {"numConvertedFiles": change.added_data.num_rows})


def _restate(change: Change, metadata: Metadata, counts: FileCounts) -> Told:
    """Return what tells of files that are added once more, with other partition values.

    It has a name of its own: who counts files takes what OPTIMIZE adds for new.
    """
    parameters = {"partitionBy": list(metadata.partition_columns)}
    return Told("RESTATE FILES", parameters, _files(change, counts))


def _other(change: Change, metadata: Metadata, counts: FileCounts) -> Told:
    if change.operation is Operation.REPLACE:
        return _optimize(change, metadata, counts)
    if change.removed_data or change.added_deletes.num_rows:
        return (
            _merge(change, metadata, counts)
            if change.added_data.num_rows
            else _delete(change, metadata, counts)
        )
    return _write(change, metadata, counts)


_KINDS = {
    "append": _write,
    "overwrite": _write,
    "create": _create,
    "convert": _convert,
    "delete": _delete,
    "update": _update,
    "merge": _merge,
    "upsert": _merge,
    "truncate": _truncate,
    "restate": _restate,
}


def tags_of(change: Change) -> dict[str, str]:
    """Return what rowlake says beyond Delta's fields: counts, batches, properties of users."""
    batch = change.app_batch.summary if change.app_batch else {}
    given = {str(key): str(value) for key, value in change.properties.items()}
    return {key: value for key, value in (given | batch).items() if key != USER_METADATA}


def _predicate(change: Change) -> dict[str, Any]:
    found = change.requirements.conflict_detection_filter
    return {"predicate": [] if found is None or found == TRUE else [predicate_text(found)]}


def _output(change: Change) -> dict[str, int]:
    return {
        "numFiles": change.added_data.num_rows,
        "numOutputRows": _rows(change.added_data),
        "numOutputBytes": _bytes(change.added_data, "file_size_in_bytes"),
    }


def _removed(counts: FileCounts) -> dict[str, int]:
    if not counts.removed.num_rows:
        return {}
    return {
        "numRemovedFiles": counts.removed.num_rows,
        "numRemovedBytes": _bytes(counts.removed, "size"),
        "numDeletedRows": counts.removed_rows,
    }


def _files(change: Change, counts: FileCounts) -> dict[str, int]:
    return {
        "numAddedFiles": change.added_data.num_rows,
        "numAddedBytes": _bytes(change.added_data, "file_size_in_bytes"),
        "numRemovedFiles": counts.removed.num_rows,
        "numRemovedBytes": _bytes(counts.removed, "size"),
        "numDeletionVectorsAdded": counts.vectors_added,
        "numDeletionVectorsRemoved": counts.vectors_removed,
        **_change_files(change, "numAddedChangeFiles"),
    }


def _change_files(change: Change, name: str) -> dict[str, int]:
    return {name: change.images.num_rows} if change.images.num_rows else {}


def _counted(change: Change, name: str, default: int) -> int:
    return int(change.properties.get(_ROWS + name, default))


def _rows(files: pa.Table) -> int:
    return int(pc.sum(files["record_count"]).as_py() or 0)


def _bytes(files: pa.Table, column: str) -> int:
    return int(pc.sum(files[column]).as_py() or 0)
