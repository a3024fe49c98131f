"""Tables of files to manifests.

Comes in: entries as `files_schema` has them (native partitions with field ids). Goes out: Avro
files as Iceberg's Java library writes them, and their rows for the manifest list. Invariants:

- ADDED entries leave the file sequence number, and the data sequence number unless one is given,
  to be inherited; EXISTING and DELETED entries have both (spec, Sequence Number Inheritance);
- a new manifest's own sequence number is null until a manifest list assigns it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.codecs.avro_container import container_header, framed
from rowlake.codecs.avro_encode import encode_blocks, encode_rows
from rowlake.codecs.avro_schema import avro_schema, iceberg_schema
from rowlake.errors import InternalError, InvalidStatementError, UnsupportedFeatureError
from rowlake.iceberg.manifest_entries import one_array
from rowlake.iceberg.manifest_schema import (
    BLOCK_SIZE_ID,
    FIELD_IDS,
    entry_struct,
)
from rowlake.model.files import MANIFESTS, Status
from rowlake.model.values import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rowlake.codecs.avro_container import Block
    from rowlake.storage.files import Storage

ENCODED_ROWS = 32_768
BLOCK_BYTES = 512 * 1024
MIN_BLOCK_BYTES = 4 * 1024
V1_BLOCK_SIZE = 64 * 1024 * 1024
CODECS = {
    "gzip": "deflate",
    "zstd": "zstandard",
    "snappy": "snappy",
    "uncompressed": "null",
}


@dataclass(frozen=True)
class ManifestHeader:
    """What a manifest says of itself; `content` is 0 for data, 1 for deletes.

    `schema_json` is the table's schema, `spec_json` the list of the spec's fields, both in the
    JSON form of the spec's Appendix C. `codec` is Avro's name of the compression.
    """

    format_version: int
    content: int
    snapshot_id: int
    spec_id: int
    schema_json: str
    spec_json: str
    codec: str = "deflate"


def manifest_codec(properties: Mapping[str, str]) -> str:
    """Return the Avro codec that a table's `write.avro.compression-codec` asks for."""
    name = properties.get("write.avro.compression-codec", "gzip").lower()
    if name not in CODECS:
        raise InvalidStatementError(
            f"write.avro.compression-codec is {name}; it can be {', '.join(CODECS)}."
        )
    return CODECS[name]


def write_manifest(
    location: str, entries: pa.Table, header: ManifestHeader, storage: Storage
) -> pa.Table:
    """Write entries as one manifest, be they none; return its row (`MANIFESTS`)."""
    layout = _Layout.of(header, entries.schema.field("partition").type)
    blocks = [block for batch in _encoded(entries, layout, BLOCK_BYTES) for block in batch]
    return _write(location, entries, blocks, layout, storage)


def write_manifests(
    next_location: Callable[[], str],
    entries: pa.Table,
    header: ManifestHeader,
    storage: Storage,
    *,
    target_size_in_bytes: int,
) -> pa.Table:
    """Write entries as manifests that do not pass the target size; return their rows.

    A manifest holds at least one block, so a small target is passed by less than a block.
    """
    layout = _Layout.of(header, entries.schema.field("partition").type)
    block_bytes = max(MIN_BLOCK_BYTES, min(BLOCK_BYTES, target_size_in_bytes))
    written = [MANIFESTS.empty_table()]

    def flush(blocks: list[Block]) -> None:
        first, count = blocks[0].first, sum(block.count for block in blocks)
        part = entries.slice(first, count)
        written.append(_write(next_location(), part, blocks, layout, storage))

    pending: list[Block] = []
    size = 0
    for batch in _encoded(entries, layout, block_bytes):
        for block in batch:
            if pending and size + len(block.payload) > target_size_in_bytes:
                flush(pending)
                pending, size = [], 0
            pending.append(block)
            size += len(block.payload)
    if pending:
        flush(pending)
    return pa.concat_tables(written)


@dataclass(frozen=True)
class _Layout:
    """A header with the schemas that go with it; `fields` are an entry's, flattened."""

    header: ManifestHeader
    fields: list[dict[str, Any]]
    metadata: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, header: ManifestHeader, partition: pa.StructType) -> _Layout:
        struct = entry_struct(header.format_version, partition)
        avro = avro_schema("manifest_entry", struct)
        *entry, data_file = avro["fields"]
        metadata = {
            "avro.schema": _json(avro),
            "iceberg.schema": _json(iceberg_schema(struct)),
            "schema": header.schema_json,
            **_schema_id(header.schema_json),
            "partition-spec": header.spec_json,
            "partition-spec-id": str(header.spec_id),
            "format-version": str(header.format_version),
        }
        if header.format_version >= 2:
            metadata["content"] = "deletes" if header.content else "data"
        return cls(header, [*entry, *data_file["type"]["fields"]], metadata)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _schema_id(schema_json: str) -> dict[str, str]:
    schema_id = json.loads(schema_json).get("schema-id")
    return {} if schema_id is None else {"schema-id": str(schema_id)}


def _encoded(entries: pa.Table, layout: _Layout, block_bytes: int) -> Iterator[list[Block]]:
    """Yield the blocks of entries, some ten thousand rows at a time."""
    for first in range(0, entries.num_rows, ENCODED_ROWS):
        batch = entries.slice(first, ENCODED_ROWS).combine_chunks()
        columns = _columns(batch, layout.header)
        rows = encode_rows(layout.fields, columns, batch.num_rows)
        yield encode_blocks(rows, first, layout.header.codec, block_bytes)


def _columns(entries: pa.Table, header: ManifestHeader) -> dict[int, pa.Array]:
    """Return the columns of entries by field id, as they must be stored."""
    columns = {FIELD_IDS[name]: one_array(entries[name]) for name in FIELD_IDS}
    status = columns[FIELD_IDS["status"]]
    is_added = pc.equal(status, int(Status.ADDED))
    snapshot_id = pa.scalar(header.snapshot_id, pa.int64())
    columns[FIELD_IDS["snapshot_id"]] = pc.coalesce(columns[FIELD_IDS["snapshot_id"]], snapshot_id)
    file_number = columns[FIELD_IDS["file_sequence_number"]]
    columns[FIELD_IDS["file_sequence_number"]] = pc.if_else(
        is_added, pa.scalar(None, pa.int64()), file_number
    )
    numbers = columns[FIELD_IDS["data_sequence_number"]]
    known = pc.or_(is_added, numbers.is_valid())
    if header.format_version >= 2 and not pc.all(known, min_count=0).as_py():
        raise InternalError("An existing or deleted entry of a manifest has no sequence number.")
    _check_content(columns[FIELD_IDS["content"]], header)
    if header.content:
        columns[FIELD_IDS["first_row_id"]] = pa.nulls(len(status), pa.int64())
    columns[BLOCK_SIZE_ID] = pa.repeat(pa.scalar(V1_BLOCK_SIZE, pa.int64()), len(status))
    return columns


def _check_content(content: pa.Array, header: ManifestHeader) -> None:
    if header.content and header.format_version == 1:
        raise UnsupportedFeatureError("A table of format version 1 cannot hold delete files.")
    is_data = pc.equal(content, 0)
    fits = pc.invert(is_data) if header.content else is_data
    if not pc.all(fits, min_count=0).as_py():
        raise InternalError("A manifest holds either data files or delete files.")


def _write(
    location: str, entries: pa.Table, blocks: list[Block], layout: _Layout, storage: Storage
) -> pa.Table:
    head, sync = container_header(layout.metadata, layout.header.codec)
    data = b"".join([head, *(framed(block, sync) for block in blocks)])
    storage.write(location, data)
    return _row(location, len(data), entries, layout.header)


def _row(location: str, length: int, entries: pa.Table, header: ManifestHeader) -> pa.Table:
    """Return the row of a manifest for the manifest list."""
    status = entries["status"].to_numpy()
    records = entries["record_count"].to_numpy()
    files = np.bincount(status, minlength=3)
    rows = [int(records[status == of].sum()) for of in range(3)]
    live = entries.filter(pc.not_equal(entries["status"], int(Status.DELETED)))
    row = {
        "location": location,
        "manifest_length": length,
        "partition_spec_id": header.spec_id,
        "content": header.content,
        "sequence_number": None,
        "min_sequence_number": pc.min(live["data_sequence_number"]).as_py(),
        "added_snapshot_id": header.snapshot_id,
        "added_files_count": int(files[Status.ADDED]),
        "existing_files_count": int(files[Status.EXISTING]),
        "deleted_files_count": int(files[Status.DELETED]),
        "added_rows_count": rows[Status.ADDED],
        "existing_rows_count": rows[Status.EXISTING],
        "deleted_rows_count": rows[Status.DELETED],
        "partitions": partition_summaries(one_array(entries["partition"])),
        "key_metadata": None,
        "first_row_id": None,
    }
    return pa.Table.from_pylist([row], schema=MANIFESTS)


def partition_summaries(partitions: pa.StructArray) -> list[dict[str, Any]]:
    """Return the summary of each partition field over all entries (spec, field_summary)."""
    return [_summary(column) for column in partitions.flatten()]


def _summary(values: pa.Array) -> dict[str, Any]:
    is_float = pa.types.is_floating(values.type)
    known = values.drop_null()
    nans = pc.is_nan(known) if is_float else None
    has_nan = bool(nans is not None and pc.any(nans, min_count=0).as_py())
    bounded = known.filter(pc.invert(nans)) if has_nan else known
    return {
        "contains_null": values.null_count > 0,
        "contains_nan": has_nan,
        **_bounds(bounded, is_float=is_float),
    }


def _bounds(values: pa.Array, *, is_float: bool) -> dict[str, bytes | None]:
    if not len(values) or pa.types.is_null(values.type):
        return {"lower_bound": None, "upper_bound": None}
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    found = pc.min_max(values)
    pair = [found["min"], found["max"]]
    if is_float:
        # -0.0 is below 0.0 in a bound, but equal to it in Arrow.
        pair = [_zero(pair[0], -0.0), _zero(pair[1], 0.0)]
    lower, upper = encode(pa.array([part.as_py() for part in pair], values.type)).to_pylist()
    return {"lower_bound": lower, "upper_bound": upper}


def _zero(bound: pa.Scalar, zero: float) -> pa.Scalar:
    return pa.scalar(zero, bound.type) if bound.as_py() == 0.0 else bound
