"""Rows of checkpoints: a struct column for each kind of action (PROTOCOL.md, "Checkpoint Schema").

Comes in: files as columns, other actions as values. Goes out: record batches of one layout, in each
row of which one column is set. Statistics are texts, columns or both, as the table's properties
say (`delta.checkpoint.writeStatsAsJson`, `…writeStatsAsStruct`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.delta.actions import PARTITION_VALUES
from rowlake.delta.add_actions import VECTORS_FEATURE, log_paths
from rowlake.delta.partitions import partitions_of
from rowlake.delta.statistics import from_structs, json_type, typed_bounds
from rowlake.delta.stats_json import ROWS, SIDES, Leaf, read_leaves
from rowlake.delta.stats_writer import TIGHT, has_bounds, stats_columns_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.delta.live_files import FileBatch
    from rowlake.delta.schema import TableColumns
    from rowlake.delta.state import LogState

AS_JSON, AS_STRUCT = "delta.checkpoint.writeStatsAsJson", "delta.checkpoint.writeStatsAsStruct"
_TEXTS = pa.list_(pa.field("element", pa.string()))
VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_VECTOR_COLUMNS = (
    "storage_type",
    "vector_path",
    "vector_offset",
    "vector_size",
    "vector_cardinality",
)
OTHERS = {
    "txn": pa.struct(
        [("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", PARTITION_VALUES)])),
            ("schemaString", pa.string()),
            ("partitionColumns", _TEXTS),
            ("configuration", PARTITION_VALUES),
            ("createdTime", pa.int64()),
        ]
    ),
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", _TEXTS),
            ("writerFeatures", _TEXTS),
        ]
    ),
    "domainMetadata": pa.struct(
        [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
    ),
}
V2_OTHERS = {
    "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", PARTITION_VALUES)]),
    "sidecar": pa.struct(
        [
            ("path", pa.string()),
            ("sizeInBytes", pa.int64()),
            ("modificationTime", pa.int64()),
            ("tags", PARTITION_VALUES),
        ]
    ),
}
REMOVE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", PARTITION_VALUES),
        ("size", pa.int64()),
        ("deletionVector", VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
    ]
)
_ADD = [
    pa.field("path", pa.string()),
    pa.field("partitionValues", PARTITION_VALUES),
    pa.field("size", pa.int64()),
    pa.field("modificationTime", pa.int64()),
    pa.field("dataChange", pa.bool_()),
    pa.field("tags", PARTITION_VALUES),
    pa.field("deletionVector", VECTOR),
    pa.field("baseRowId", pa.int64()),
    pa.field("defaultRowCommitVersion", pa.int64()),
    pa.field("clusteringProvider", pa.string()),
]


@dataclass(frozen=True)
class FileRows:
    """Adds and removes of a state as structs of a checkpoint."""

    state: LogState
    columns: TableColumns

    def _is_set(self, name: str) -> bool:
        # The protocol leaves the default of the struct open; Delta on Spark writes both.
        return self.state.metadata.configuration.get(name, "true").lower() == "true"

    @cached_property
    def add_type(self) -> pa.StructType:
        """The layout of adds."""
        fields = list(_ADD)
        if self._is_set(AS_JSON) or not self._has_struct:
            fields.append(pa.field("stats", pa.string()))
        if self._has_struct:
            if self.columns.spec.fields:
                fields.append(pa.field("partitionValues_parsed", self._partitions.type))
            fields.append(pa.field("stats_parsed", self.parsed_type))
        return pa.struct(fields)

    @property
    def _has_struct(self) -> bool:
        return self._is_set(AS_STRUCT)

    @cached_property
    def _partitions(self) -> pa.StructArray:
        return self._parsed_partitions(pa.array([], PARTITION_VALUES))

    def _parsed_partitions(self, values: pa.Array | pa.ChunkedArray) -> pa.StructArray:
        found = partitions_of(values, self.columns, self.state.segment.folder)
        names = [self.columns.physical[one.source_id][0] for one in self.columns.spec.fields]
        return pa.StructArray.from_arrays(found.flatten(), names=names)

    @cached_property
    def _leaves(self) -> dict[tuple[str, ...], pa.DataType]:
        """The columns that have statistics, by physical path."""
        chosen = stats_columns_of(self.columns, self.state.metadata.configuration)
        kinds = self.columns.schema.by_id
        return {self.columns.physical[one]: kinds[one].type for one in chosen.ids}

    @cached_property
    def parsed_type(self) -> pa.StructType:
        """The layout of statistics as columns."""
        bounds = {path: kind for path, kind in self._leaves.items() if has_bounds(kind)}
        fields = [pa.field(ROWS, pa.int64())]
        for side, some in zip(SIDES[:2], (bounds, bounds), strict=True):
            if some:
                fields.append(pa.field(side, _struct_type(some)))
        if self._leaves:
            fields.append(pa.field(SIDES[2], _struct_type(dict.fromkeys(self._leaves, pa.int64()))))
        if VECTORS_FEATURE in self.state.protocol.reader_features:
            fields.append(pa.field(TIGHT, pa.bool_()))
        return pa.struct(fields)

    def adds(self, batch: FileBatch) -> pa.StructArray:
        """Return the adds of some live files."""
        files = batch.files
        found = {
            **self._shared(files),
            "modificationTime": pc.fill_null(files["modification_time"], 0),
            "tags": files["tags"],
            "clusteringProvider": files["clustering_provider"],
        }
        names = {one.name for one in self.add_type}
        if "stats" in names:
            found["stats"] = batch.stats(self.columns)
        if "partitionValues_parsed" in names:
            found["partitionValues_parsed"] = self._parsed_partitions(files["partition_values"])
        if "stats_parsed" in names:
            found["stats_parsed"] = self._parsed(batch)
        return _struct(found, self.add_type, files.num_rows)

    def removes(self, files: pa.Table) -> pa.StructArray:
        """Return removes (`FILES`)."""
        found = {
            **self._shared(files),
            "deletionTimestamp": files["deletion_time"],
            "extendedFileMetadata": pc.is_valid(files["size"]),
        }
        return _struct(found, REMOVE, files.num_rows)

    def _shared(self, files: pa.Table) -> dict[str, Any]:
        versions = pc.if_else(pc.is_valid(files["base_row_id"]), files["commit_version"], None)
        return {
            "path": log_paths(files, self.state.table),
            "partitionValues": files["partition_values"],
            "size": files["size"],
            # A checkpoint is no change of rows: those that made it said so in their commits.
            "dataChange": pa.array(np.zeros(files.num_rows, np.bool_)),
            "deletionVector": _vectors(files),
            "baseRowId": files["base_row_id"],
            "defaultRowCommitVersion": versions,
        }

    def _parsed(self, batch: FileBatch) -> pa.StructArray:
        if batch.parsed is not None and batch.parsed.type == self.parsed_type:
            return batch.parsed
        wanted = [Leaf(path, json_type(kind)) for path, kind in self._leaves.items()]
        if batch.texts is None and batch.parsed is not None:
            leaves = from_structs(batch.parsed, wanted)
        else:
            leaves = read_leaves(batch.stats(self.columns), wanted)
        found: dict[tuple[str, ...], pa.Array] = {(ROWS,): leaves.rows}
        for side in SIDES:
            for path, values in leaves.sides.get(side, {}).items():
                kind = pa.int64() if side == SIDES[2] else self._leaves[path]
                found[(side, *path)] = typed_bounds(values, kind)
        found[(TIGHT,)] = _tightness(batch.stats(self.columns))
        return _nested(found, (), self.parsed_type, len(leaves.rows))


def _tightness(texts: pa.Array) -> pa.Array:
    is_wide = pc.match_substring(texts, f'"{TIGHT}":false')
    is_tight = pc.match_substring(texts, f'"{TIGHT}":true')
    return pc.if_else(pc.or_(is_wide, is_tight), is_tight, None)


def _struct_type(leaves: Mapping[tuple[str, ...], pa.DataType]) -> pa.StructType:
    fields: dict[str, Any] = {}
    for path, kind in leaves.items():
        if len(path) == 1:
            fields[path[0]] = kind
        else:
            fields.setdefault(path[0], {})[path[1:]] = kind
    return pa.struct(
        [
            pa.field(name, _struct_type(one) if isinstance(one, dict) else one)
            for name, one in fields.items()
        ]
    )


def _nested(
    leaves: Mapping[tuple[str, ...], pa.Array | None],
    above: tuple[str, ...],
    kind: pa.StructType,
    size: int,
) -> pa.StructArray:
    arrays = []
    for field in kind:
        path = (*above, field.name)
        if pa.types.is_struct(field.type):
            arrays.append(_nested(leaves, path, field.type, size))
        else:
            values = leaves.get(path)
            arrays.append(pa.nulls(size, field.type) if values is None else values.cast(field.type))
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _vectors(files: pa.Table) -> pa.StructArray:
    arrays = [
        _one(files[name]).cast(field.type)
        for name, field in zip(_VECTOR_COLUMNS, VECTOR, strict=True)
    ]
    return pa.StructArray.from_arrays(
        arrays, fields=list(VECTOR), mask=_one(files["storage_type"]).is_null()
    )


def _struct(found: Mapping[str, Any], kind: pa.StructType, size: int) -> pa.StructArray:
    arrays = [
        _one(found[one.name]) if one.name in found else pa.nulls(size, one.type) for one in kind
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def other_rows(actions: list[tuple[str, Mapping[str, Any]]], layout: pa.Schema) -> pa.RecordBatch:
    """Return actions that are not of files, each as a row."""
    arrays = [
        pa.array([_row(body) if kind == field.name else None for kind, body in actions], field.type)
        for field in layout
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=layout)


def _row(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an action as Arrow takes it: maps are lists of pairs."""
    return {
        name: list(one.items())
        if name in ("configuration", "tags", "options") and isinstance(one, dict)
        else _row(one)
        if isinstance(one, dict)
        else one
        for name, one in body.items()
    }


def file_rows(structs: pa.StructArray, kind: str, layout: pa.Schema) -> pa.RecordBatch:
    """Return adds or removes as rows in which only their column is set."""
    size = len(structs)
    arrays = [structs if one.name == kind else pa.nulls(size, one.type) for one in layout]
    return pa.RecordBatch.from_arrays(arrays, schema=layout)
