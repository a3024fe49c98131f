"""Manifest lists: a snapshot's manifests as a table of `MANIFESTS`, read and written.

Comes in: a location, or rows. Goes out: rows, or a file. Invariants: what v1 does not store is
read as the spec says (content and sequence numbers 0); writing gives every new manifest the
snapshot's sequence number and, from v3 on, its range of row ids.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.codecs.avro_container import container_header, framed
from rowlake.codecs.avro_encode import encode_blocks, encode_rows
from rowlake.codecs.avro_file import decode_file
from rowlake.codecs.avro_schema import avro_schema, iceberg_schema
from rowlake.errors import CorruptTableError, InternalError, UnsupportedFeatureError, shown
from rowlake.iceberg.manifest_entries import as_type, one_array, struct_columns
from rowlake.iceberg.manifest_schema import (
    MANIFEST_FIELD_IDS,
    manifest_list_struct,
)
from rowlake.model.files import MANIFESTS

if TYPE_CHECKING:
    from rowlake.storage.files import Storage

CODEC = "deflate"
BLOCK_BYTES = 256 * 1024
_ZERO_IN_V1 = ("content", "sequence_number", "min_sequence_number")
_CONTENTS = pa.array([0, 1], MANIFESTS.field("content").type)
_MOST_FILES = 2**29  # sums of them fit 32 bits
_MOST = dict.fromkeys(
    ("added_files_count", "existing_files_count", "deleted_files_count"), _MOST_FILES
)
_COUNTED = (
    "manifest_length",
    "sequence_number",
    "min_sequence_number",
    "added_files_count",
    "existing_files_count",
    "deleted_files_count",
    "added_rows_count",
    "existing_rows_count",
    "deleted_rows_count",
)
_REQUIRED = ("location", "manifest_length", "partition_spec_id", "added_snapshot_id")


@dataclass(frozen=True)
class ManifestListHeader:
    """Whose list it is; `first_row_id` is where its new row ids start (v3)."""

    format_version: int
    snapshot_id: int
    parent_snapshot_id: int | None
    sequence_number: int
    first_row_id: int | None = None


def read_manifest_list(location: str, storage: Storage) -> pa.Table:
    """Return the manifests of a snapshot, in the order of the list."""
    raw, header = decode_file(location, storage)
    names = {field.get("field-id"): field["name"] for field in header.fields}
    columns = []
    for field in MANIFESTS:
        name = names.get(MANIFEST_FIELD_IDS[field.name])
        if name is None and field.name in _REQUIRED:
            raise CorruptTableError(location, f"it has no column {field.name}")
        stored = None if name is None else one_array(raw[name])
        if field.name in _ZERO_IN_V1 and stored is not None and stored.null_count:
            raise CorruptTableError(location, f"a manifest has no {field.name}")
        columns.append(_column(stored, field, raw.num_rows, location))
    manifests = pa.table(columns, schema=MANIFESTS)
    _validate(manifests, location)
    return manifests


def _validate(manifests: pa.Table, location: str) -> None:
    """Refuse manifests that would be read twice, or not at all (spec, Manifest Lists)."""
    unknown = manifests.filter(pc.invert(pc.is_in(manifests["content"], _CONTENTS)))
    if unknown.num_rows:
        content, path = unknown["content"][0], unknown["location"][0]
        raise CorruptTableError(location, f"manifest {path} has the unknown content {content}")
    for name in _COUNTED:
        least, most = (bound.as_py() for bound in pc.min_max(manifests[name]).values())
        # A file whose rows an import did not count has -1 of them.
        limit = -_MOST_FILES if name.endswith("_rows_count") else 0
        if least is not None and not limit <= least <= most <= _MOST.get(name, most):
            raise CorruptTableError(
                location, f"a manifest has a {name} of {most if least >= limit else least}"
            )
    for kind in ("added", "existing"):
        files, rows = manifests[f"{kind}_files_count"], manifests[f"{kind}_rows_count"]
        if pc.any(pc.and_(pc.equal(files, 0), pc.greater(rows, 0))).as_py():
            raise CorruptTableError(location, f"a manifest has {kind} rows, but no {kind} files")
    counts = pc.value_counts(manifests["location"])
    if len(counts) < manifests.num_rows:
        paths, times = counts.flatten()
        twice = paths.filter(pc.greater(times, 1))
        raise CorruptTableError(location, f"it lists more than once: {shown(twice)}")


def has_live_files(manifests: pa.Table) -> pa.Array:
    """Return which manifests hold live files; counts missing in v1 lists count as live."""
    counts = (manifests["added_files_count"], manifests["existing_files_count"])
    added, existing = (pc.greater(pc.fill_null(count, 1), 0) for count in counts)
    return pc.or_(added, existing)


def _column(stored: pa.Array | None, field: pa.Field, count: int, location: str) -> pa.Array:
    if field.name == "partitions" and stored is not None:
        return _summaries(stored, field)
    try:
        values = pa.nulls(count, field.type) if stored is None else as_type(stored, field.type)
    except pa.ArrowException as error:
        raise CorruptTableError(location, f"{field.name} cannot be read ({error})") from error
    if field.name in _REQUIRED and values.null_count:
        raise CorruptTableError(location, f"a manifest has no {field.name}")
    if field.name in _ZERO_IN_V1 and values.null_count:
        return pc.coalesce(values, pa.scalar(0, field.type))
    return values


def _summaries(stored: pa.Array, field: pa.Field) -> pa.Array:
    """Return partition summaries with all of their fields; v1 lists may lack some."""
    if pa.types.is_null(stored.type):
        return pa.nulls(len(stored), field.type)
    items = stored.values
    held = struct_columns(items)
    layout = field.type.value_type
    fields = [layout.field(at) for at in range(layout.num_fields)]
    columns = [
        as_type(held[part.name], part.type)
        if part.name in held
        else pa.nulls(len(items), part.type)
        for part in fields
    ]
    entries = pa.StructArray.from_arrays(columns, fields=fields)
    buffers = stored.buffers()[:2]
    return pa.Array.from_buffers(
        field.type, len(stored), buffers, stored.null_count, stored.offset, children=[entries]
    )


def write_manifest_list(
    location: str, manifests: pa.Table, header: ManifestListHeader, storage: Storage
) -> int:
    """Write a snapshot's manifest list; return the next free row id (0 before v3).

    Rows without a sequence number are this snapshot's own: they get the header's. In v3, data
    manifests without a `first_row_id` get one (spec, First Row ID Assignment).
    """
    assigned, next_row_id = _assigned(manifests.combine_chunks(), header)
    struct = manifest_list_struct(header.format_version)
    avro = avro_schema("manifest_file", struct)
    columns = {MANIFEST_FIELD_IDS[name]: one_array(assigned[name]) for name in MANIFEST_FIELD_IDS}
    rows = encode_rows(avro["fields"], columns, assigned.num_rows)
    metadata = _metadata(header) | {
        "avro.schema": json.dumps(avro, separators=(",", ":")),
        "iceberg.schema": json.dumps(iceberg_schema(struct), separators=(",", ":")),
    }
    head, sync = container_header(metadata, CODEC)
    blocks = encode_blocks(rows, 0, CODEC, BLOCK_BYTES)
    storage.write(location, b"".join([head, *(framed(block, sync) for block in blocks)]))
    return next_row_id


def _metadata(header: ManifestListHeader) -> dict[str, str]:
    parent = header.parent_snapshot_id
    pairs = {
        "snapshot-id": str(header.snapshot_id),
        "parent-snapshot-id": "null" if parent is None else str(parent),
    }
    if header.format_version >= 2:
        pairs["sequence-number"] = str(header.sequence_number)
    if header.format_version >= 3:
        pairs["first-row-id"] = str(header.first_row_id)
    return pairs | {"format-version": str(header.format_version)}


def _assigned(manifests: pa.Table, header: ManifestListHeader) -> tuple[pa.Table, int]:
    """Return the rows with sequence numbers and row ids, and the next free row id."""
    if header.format_version == 1 and pc.any(pc.equal(manifests["content"], 1)).as_py():
        raise UnsupportedFeatureError("A table of format version 1 cannot hold delete files.")
    numbers = pa.scalar(header.sequence_number, pa.int64())
    for name in ("sequence_number", "min_sequence_number"):
        manifests = _replaced(manifests, name, pc.coalesce(manifests[name], numbers))
    if header.format_version < 3:
        return manifests, 0
    if header.first_row_id is None:
        raise InternalError("A manifest list of format version 3 needs a first row id.")
    is_data = _numpy(pc.equal(manifests["content"], 0))
    unset = is_data & _numpy(pc.is_null(manifests["first_row_id"]))
    rows = pc.add(
        pc.max_element_wise(manifests["added_rows_count"], 0),
        pc.max_element_wise(manifests["existing_rows_count"], 0),
    )
    taken = np.where(unset, _numpy(rows), 0)
    ends = header.first_row_id + np.cumsum(taken)
    starts = pc.if_else(pa.array(unset), pa.array(ends - taken), manifests["first_row_id"])
    kept = pc.if_else(pa.array(is_data), starts, pa.scalar(None, pa.int64()))
    next_row_id = int(ends[-1]) if len(ends) else header.first_row_id
    return _replaced(manifests, "first_row_id", kept), next_row_id


def _numpy(values: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(values.to_numpy())


def _replaced(table: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(name), values)
