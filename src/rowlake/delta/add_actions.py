"""Files -> `add` and `remove` actions (PROTOCOL.md, "Add File and Remove File").

Comes in: files that were written (`WRITTEN_FILES`), or live ones (`FILES`) that get another vector
or go. Goes out: actions as JSON has them, fields in Delta's order. Texts are made by columns; a
dict per file is all that is made one by one. Invariant: the path of a file is spelled as its first
add spelled it, since readers match removes and adds by it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.delta.commit_file import json_text
from rowlake.delta.partitions import partition_texts
from rowlake.delta.paths import paths_of
from rowlake.delta.stats_json import ROWS
from rowlake.delta.stats_writer import TIGHT, stats_columns_of, stats_texts
from rowlake.model.transform import partition_type
from rowlake.model.values import decode_partitions
from rowlake.secrets import redacted_repr

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rowlake.delta.protocol import Protocol
    from rowlake.delta.schema import TableColumns
    from rowlake.delta.vector_file import VectorDescriptor

VECTORS_FEATURE = "deletionVectors"


@dataclass(frozen=True)
class Adding:
    """What adds to a table depend on: folder, columns, properties, protocol, clustering."""

    folder: str
    columns: TableColumns
    properties: Mapping[str, str]
    protocol: Protocol
    clustered_ids: tuple[int, ...] = ()

    __repr__ = redacted_repr


@dataclass(frozen=True)
class RowIds:
    """The ids of new rows: the first one, and the version that adds them."""

    first: int
    version: int


def add_actions(
    written: pa.Table,
    of: Adding,
    *,
    modified_ms: int,
    data_change: bool = True,
    row_ids: RowIds | None = None,
    vectors: Mapping[str, VectorDescriptor] | None = None,
    tags: Mapping[str, str] | None = None,
    clustering_provider: str | None = None,
) -> list[dict[str, Any]]:
    """Return the adds of data files that were written.

    `vectors` are deletion vectors of some of them by location; `row_ids` are needed where the
    table has the feature rowTracking. Raises InvalidStatementError for a partition value that the
    log cannot hold.
    """
    count = written.num_rows
    first = _first_ids(written["record_count"], row_ids)
    columns = {
        "path": paths_of(_one(written["location"]), of.folder).to_pylist(),
        "partitionValues": _partition_values(written, of),
        "size": written["file_size_in_bytes"].to_pylist(),
        "modificationTime": [modified_ms] * count,
        "dataChange": [data_change] * count,
        "stats": _stats(written, of, vectors or {}),
        "tags": [dict(tags) if tags else None] * count,
        "deletionVector": _descriptors(written["location"].to_pylist(), vectors or {}),
        "baseRowId": first,
        "defaultRowCommitVersion": [row_ids.version if row_ids else None] * count,
        "clusteringProvider": [clustering_provider] * count,
    }
    return _actions("add", columns)


def cdc_actions(written: pa.Table, of: Adding) -> list[dict[str, Any]]:
    """Return the `cdc` actions of change files that were written."""
    columns = {
        "path": paths_of(_one(written["location"]), of.folder).to_pylist(),
        "partitionValues": _partition_values(written, of),
        "size": written["file_size_in_bytes"].to_pylist(),
        "dataChange": [False] * written.num_rows,
    }
    return _actions("cdc", columns)


def _first_ids(counts: pa.ChunkedArray, row_ids: RowIds | None) -> list[int | None]:
    if row_ids is None:
        return [None] * len(counts)
    ends = np.cumsum(np.asarray(counts), dtype=np.int64)
    return [int(one) for one in row_ids.first + np.concatenate([np.zeros(1, np.int64), ends[:-1]])]


def _partition_values(written: pa.Table, of: Adding) -> list[dict[str, str | None]]:
    if not of.columns.spec.fields:
        return [{} for _ in range(written.num_rows)]
    kind = partition_type(of.columns.spec, of.columns.schema)
    texts = partition_texts(decode_partitions(_one(written["partition"]), kind), of.columns)
    names, values = list(texts), [one.to_pylist() for one in texts.values()]
    return [dict(zip(names, some, strict=True)) for some in zip(*values, strict=True)]


def _stats(
    written: pa.Table, of: Adding, vectors: Mapping[str, VectorDescriptor]
) -> list[str | None]:
    chosen = stats_columns_of(of.columns, of.properties, of.clustered_ids)
    with_tight_bounds = VECTORS_FEATURE in of.protocol.reader_features
    texts: list[str | None]
    texts = stats_texts(written, chosen, with_tight_bounds=with_tight_bounds).to_pylist()
    if vectors:
        places = written["location"].to_pylist()
        texts = [
            loosened(text, None) if place in vectors else text
            for text, place in zip(texts, places, strict=True)
        ]
    return texts


def _descriptors(
    locations: Sequence[str], vectors: Mapping[str, VectorDescriptor]
) -> list[dict[str, Any] | None]:
    found = [vectors.get(one) for one in locations]
    return [None if one is None else one.json() for one in found]


def readd_actions(
    files: pa.Table,
    folder: str,
    vectors: Mapping[str, VectorDescriptor],
    *,
    record_counts: pa.Array | None = None,
    data_change: bool = True,
) -> list[dict[str, Any]]:
    """Return the adds of live files (`FILES`, with their statistics) with other vectors.

    A file that `vectors` does not have by location has none afterwards. What else an add says
    stays; statistics speak of all rows of a file, so its bounds are not tight any more.
    `record_counts` are for files whose statistics do not count rows.
    """
    columns = _file_columns(files, folder)
    places = files["location"].to_pylist()
    counts = [None] * len(places) if record_counts is None else record_counts.to_pylist()
    stats = [
        loosened(text, count) if place in vectors else text
        for text, count, place in zip(files["stats"].to_pylist(), counts, places, strict=True)
    ]
    return _actions(
        "add",
        {
            "path": columns["path"],
            "partitionValues": columns["partitionValues"],
            "size": columns["size"],
            "modificationTime": [one or 0 for one in files["modification_time"].to_pylist()],
            "dataChange": [data_change] * len(places),
            "stats": stats,
            "tags": columns["tags"],
            "deletionVector": _descriptors(places, vectors),
            "baseRowId": columns["baseRowId"],
            "defaultRowCommitVersion": columns["defaultRowCommitVersion"],
            "clusteringProvider": files["clustering_provider"].to_pylist(),
        },
    )


def same_actions(files: pa.Table, folder: str, *, data_change: bool = True) -> list[dict[str, Any]]:
    """Return the adds of files (`FILES`, with their statistics) as they are, with their vectors."""
    columns = _file_columns(files, folder)
    count = files.num_rows
    return _actions(
        "add",
        {
            "path": columns["path"],
            "partitionValues": columns["partitionValues"],
            "size": columns["size"],
            "modificationTime": [one or 0 for one in files["modification_time"].to_pylist()],
            "dataChange": [data_change] * count,
            "stats": files["stats"].to_pylist(),
            "tags": columns["tags"],
            "deletionVector": live_vectors(files),
            "baseRowId": columns["baseRowId"],
            "defaultRowCommitVersion": columns["defaultRowCommitVersion"],
            "clusteringProvider": files["clustering_provider"].to_pylist(),
        },
    )


def remove_actions(
    files: pa.Table, folder: str, *, deleted_ms: int, data_change: bool = True
) -> list[dict[str, Any]]:
    """Return the removes of live files (`FILES`), each with the vector that it has."""
    columns = _file_columns(files, folder)
    count = files.num_rows
    return _actions(
        "remove",
        {
            "path": columns["path"],
            "deletionTimestamp": [deleted_ms] * count,
            "dataChange": [data_change] * count,
            "extendedFileMetadata": [True] * count,
            "partitionValues": columns["partitionValues"],
            "size": columns["size"],
            "tags": columns["tags"],
            "deletionVector": live_vectors(files),
            "baseRowId": columns["baseRowId"],
            "defaultRowCommitVersion": columns["defaultRowCommitVersion"],
        },
    )


def _file_columns(files: pa.Table, folder: str) -> dict[str, list[Any]]:
    """Return what adds and removes of live files share."""
    versions = pc.if_else(pc.is_valid(files["base_row_id"]), files["commit_version"], None)
    return {
        "path": log_paths(files, folder).to_pylist(),
        "partitionValues": [dict(one or ()) for one in files["partition_values"].to_pylist()],
        "size": files["size"].to_pylist(),
        "tags": [None if one is None else dict(one) for one in files["tags"].to_pylist()],
        "baseRowId": files["base_row_id"].to_pylist(),
        "defaultRowCommitVersion": versions.to_pylist(),
    }


def log_paths(files: pa.Table, folder: str) -> pa.Array:
    """Return the paths of live files as the log spells them."""
    return pc.coalesce(_one(files["path"]), paths_of(_one(files["location"]), folder))


def live_vectors(files: pa.Table) -> list[dict[str, Any] | None]:
    """Return the descriptors of the vectors that files have, None for those without."""
    names = {
        "storageType": "storage_type",
        "pathOrInlineDv": "vector_path",
        "offset": "vector_offset",
        "sizeInBytes": "vector_size",
        "cardinality": "vector_cardinality",
    }
    if files["storage_type"].null_count == files.num_rows:
        return [None] * files.num_rows
    rows = zip(*(files[one].to_pylist() for one in names.values()), strict=True)
    found = [
        {name: one for name, one in zip(names, row, strict=True) if one is not None} for row in rows
    ]
    return [one or None for one in found]


def loosened(text: str | None, record_count: int | None) -> str:
    """Return statistics of a file with a vector: they count its rows, their bounds are wide."""
    found = json.loads(text) if text else {}
    if found.get(ROWS) is None:
        found = {ROWS: record_count, **{k: one for k, one in found.items() if k != ROWS}}
    return json_text({**found, TIGHT: False})


def _actions(kind: str, columns: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    names = list(columns)
    return [
        {kind: {name: one for name, one in zip(names, row, strict=True) if one is not None}}
        for row in zip(*columns.values(), strict=True)
    ]


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
