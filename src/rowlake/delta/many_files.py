"""Commits of very many files, parsed as columns.

Comes in: the bytes of a commit. Goes out: its file actions as a table of `FILES`, and the lines
that are left. Arrow's JSON reader takes all adds and removes at once; texts of partition values,
whose names it cannot know, are parsed once for each that differs. None where the commit is small or
has a form that the reader refuses: it is read line by line then, which also finds the damaged line.
"""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from rowlake.delta.actions import FILES, PARTITION_VALUES

ENOUGH_BYTES = 1 << 20
_STARTS = ('{"add":', '{"remove":')
_MAP = r'"{}"\s*:\s*(?P<text>\{{(?:[^"{{}}]|"(?:[^"\\]|\\.)*")*\}})'
_BLOCK_BYTES = 1 << 24

_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int64()),
        ("sizeInBytes", pa.int64()),
        ("cardinality", pa.int64()),
    ]
)
_FILE = pa.struct(
    [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
        ("deletionVector", _VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
        ("modificationTime", pa.int64()),
        ("deletionTimestamp", pa.int64()),
        ("clusteringProvider", pa.string()),
    ]
)
_COLUMNS = {
    "location": ("path",),
    "size": ("size",),
    "data_change": ("dataChange",),
    "stats": ("stats",),
    "storage_type": ("deletionVector", "storageType"),
    "vector_path": ("deletionVector", "pathOrInlineDv"),
    "vector_offset": ("deletionVector", "offset"),
    "vector_size": ("deletionVector", "sizeInBytes"),
    "vector_cardinality": ("deletionVector", "cardinality"),
    "base_row_id": ("baseRowId",),
    "commit_version": ("defaultRowCommitVersion",),
    "modification_time": ("modificationTime",),
    "deletion_time": ("deletionTimestamp",),
    "clustering_provider": ("clusteringProvider",),
}
_VECTOR_PATH = ("deletionVector",)
_OF_VECTORS = ("storage_type", "vector_path", "vector_size", "vector_cardinality")


def parse_many(content: bytes, version: int | None) -> tuple[pa.Table, bytes] | None:
    """Return the file actions, their paths as they are written, and the other lines."""
    if len(content) < ENOUGH_BYTES:
        return None
    try:
        lines = _lines(content)
        is_file = pc.or_(*(pc.starts_with(lines, start) for start in _STARTS))
        rest = lines.filter(pc.invert(is_file))
        files = _files(lines.filter(is_file), version)
    except (pa.ArrowException, ValueError, KeyError, TypeError, RecursionError):
        return None
    return files, b"\n".join(one.as_buffer().to_pybytes() for one in rest)


def _lines(content: bytes) -> pa.StringArray:
    """Return the lines as one array over the same bytes."""
    data = content if content.endswith(b"\n") else content + b"\n"
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
    if ends[-1] >= 2**31:
        raise ValueError("too long for the offsets of an array")
    offsets = np.concatenate([np.zeros(1, np.int64), ends]).astype(np.int32)
    lines = pa.StringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(data))
    lines.validate(full=True)
    return lines


def _files(lines: pa.StringArray, version: int | None) -> pa.Table:
    table = _parsed(lines)
    added, removed = _one(table["add"]), _one(table["remove"])
    is_add = pc.is_valid(added)
    if not pc.all(pc.xor(is_add, pc.is_valid(removed)), min_count=0).as_py():
        raise ValueError("a line has not one action")
    found = {
        name: pc.if_else(is_add, _field(added, path), _field(removed, path))
        for name, path in _COLUMNS.items()
    }
    if found["location"].null_count:
        raise ValueError("an action has no path")
    vectors = pc.if_else(is_add, _field(added, _VECTOR_PATH), _field(removed, _VECTOR_PATH))
    for name in _OF_VECTORS:
        if found[name].null_count > vectors.null_count:
            raise ValueError(f"a deletion vector has no {name}")
    found["is_add"] = is_add
    found["data_change"] = pc.fill_null(found["data_change"], True)
    found["commit_version"] = pc.fill_null(found["commit_version"], pa.scalar(version, pa.int64()))
    found["partition_values"] = _maps(lines, "partitionValues", "{}")
    found["tags"] = _maps(lines, "tags", None)
    arrays = [
        found[one.name] if one.name in found else pa.nulls(len(lines), one.type) for one in FILES
    ]
    return pa.Table.from_arrays(arrays, schema=FILES)


def _parsed(lines: pa.StringArray) -> pa.Table:
    whole = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "")
    longest = pc.max(pc.binary_length(lines)).as_py() or 0
    schema = pa.schema([("add", _FILE), ("remove", _FILE)])
    table = arrow_json.read_json(
        io.BytesIO(whole[0].as_buffer()),
        arrow_json.ReadOptions(block_size=max(_BLOCK_BYTES, longest + 1)),
        arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    if table.num_rows != len(lines):
        raise ValueError(f"{table.num_rows} objects in {len(lines)} lines")
    return table


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def _field(struct: pa.StructArray, path: tuple[str, ...]) -> pa.Array:
    return pc.struct_field(struct, list(path))


def _maps(lines: pa.StringArray, name: str, missing: str | None) -> pa.MapArray:
    """Return the maps of texts under a name; equal texts are parsed once."""
    named = pc.match_substring(lines, f'"{name}"')
    if missing is None and not pc.any(named).as_py():
        return pa.nulls(len(lines), PARTITION_VALUES)
    texts = pc.struct_field(pc.extract_regex(lines, _MAP.format(name)), "text")
    if pc.any(pc.and_(named, pc.is_null(texts))).as_py():
        raise ValueError(f"{name} is no plain object")
    encoded = texts.fill_null(missing).dictionary_encode() if missing else texts.dictionary_encode()
    maps = pa.array([_pairs(one) for one in encoded.dictionary.to_pylist()], PARTITION_VALUES)
    return maps.take(encoded.indices)


def _pairs(text: str) -> list[tuple[str, Any]]:
    found = json.loads(text)
    return [(name, None if one is None else str(one)) for name, one in found.items()]
