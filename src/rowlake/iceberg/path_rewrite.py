"""Metadata files, manifest lists and manifests with other prefixes in their paths.

Comes in: a file of a table. Goes out: the same, staged, with every location below another prefix.
Invariants: nothing else changes (entries keep status, ids and what they inherit); a manifest list
says the lengths of the manifests as they are rewritten, and manifests the sizes of the delete files
as they are rewritten.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.codecs.avro_decode import read_header
from rowlake.codecs.avro_file import decode_file
from rowlake.codecs.position_delete import FILE_PATH_ID
from rowlake.errors import CorruptTableError
from rowlake.iceberg.manifest_entries import Entries, Manifest, one_array
from rowlake.iceberg.manifest_list import (
    ManifestListHeader,
    read_manifest_list,
    write_manifest_list,
)
from rowlake.iceberg.manifest_writer import ManifestHeader, write_manifest
from rowlake.model.files import BOUNDS, Content, files_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.codecs.avro_decode import Header
    from rowlake.iceberg.prefixes import Prefixes
    from rowlake.storage.files import Storage

_VERSIONS = frozenset({"1", "2", "3"})
_GZIP_MAGIC = b"\x1f\x8b"
_PATH_PROPERTIES = (
    "write.object-storage.path",
    "write.folder-storage.path",
    "write.data.path",
    "write.metadata.path",
)

# Delete files that were rewritten: the old location, and what their entries say now.
REWRITTEN_DELETES = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("new_location", pa.string()),
        pa.field("file_format", pa.string()),
        pa.field("file_size_in_bytes", pa.int64()),
    ]
)


def moved_metadata(data: bytes, prefixes: Prefixes) -> bytes:
    """Return a metadata file with its paths replaced; what is compressed stays so."""
    is_compressed = data.startswith(_GZIP_MAGIC)
    document = json.loads(gzip.decompress(data) if is_compressed else data)
    document["location"] = prefixes.moved(document["location"].rstrip("/"))
    for snapshot in document.get("snapshots") or ():
        if "manifest-list" in snapshot:
            snapshot["manifest-list"] = prefixes.moved(snapshot["manifest-list"])
        if "manifests" in snapshot:
            snapshot["manifests"] = [prefixes.moved(one) for one in snapshot["manifests"]]
    for entry in document.get("metadata-log") or ():
        entry["metadata-file"] = prefixes.moved(entry["metadata-file"])
    for entry in statistics_of(document):
        entry["statistics-path"] = prefixes.moved(entry["statistics-path"])
    properties = document.get("properties") or {}
    for name in _PATH_PROPERTIES:
        if name in properties:
            properties[name] = prefixes.moved(properties[name].rstrip("/"))
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
    return gzip.compress(text) if is_compressed else text


def statistics_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of statistics files in a metadata document."""
    kinds = ("statistics", "partition-statistics")
    return [entry for kind in kinds for entry in document.get(kind) or ()]


def stage_manifest_list(
    location: str, prefixes: Prefixes, lengths: Mapping[str, int], storage: Storage
) -> str:
    """Write a manifest list with its paths replaced; `lengths` are the rewritten manifests'."""
    said = read_header(storage.read(location), location).metadata
    manifests = read_manifest_list(location, storage)
    old = manifests["location"].to_pylist()
    length = pa.array([lengths[one] for one in old], pa.int64())
    manifests = _with(manifests, "manifest_length", length)
    manifests = _with(manifests, "location", prefixes.moved_column(manifests["location"]))
    staged = prefixes.staged(location)
    write_manifest_list(staged, manifests, _list_header(said, manifests, location), storage)
    return staged


def _list_header(said: Mapping[str, str], manifests: pa.Table, location: str) -> ManifestListHeader:
    version = said.get("format-version") or ("2" if "sequence-number" in said else "1")
    parent, first = said.get("parent-snapshot-id"), said.get("first-row-id")
    if "snapshot-id" not in said and not manifests.num_rows:
        raise CorruptTableError(location, "it does not say its snapshot")
    try:
        return ManifestListHeader(
            format_version=int(version),
            snapshot_id=int(said.get("snapshot-id", "-1")),
            parent_snapshot_id=None if parent in (None, "null") else int(parent),
            sequence_number=int(said.get("sequence-number", "0")),
            first_row_id=None if first in (None, "null") else int(first),
        )
    except ValueError as error:
        raise CorruptTableError(location, f"its header has no number ({error})") from error


@dataclass(frozen=True)
class RawManifest:
    """A manifest as it is stored: nothing inherited is filled in but snapshot ids."""

    row: Mapping[str, Any]
    entries: pa.Table
    header: Header

    @property
    def location(self) -> str:
        """Where it is."""
        return str(self.row["location"])


def read_raw_manifest(
    row: Mapping[str, Any], partition: pa.StructType, storage: Storage
) -> RawManifest:
    """Read one manifest; `row` is its row of a manifest list."""
    raw, header = decode_file(row["location"], storage, length=row["manifest_length"])
    fields = {name: row[name] for name in Manifest.__dataclass_fields__}
    manifest = Manifest(**{**fields, "sequence_number": None})
    table = Entries(raw, header, manifest).table(files_schema(partition), partition)
    return RawManifest(row, table, header)


def stage_manifest(
    manifest: RawManifest, prefixes: Prefixes, rewritten: pa.Table, storage: Storage
) -> int:
    """Write a manifest with its paths replaced; return its length.

    `rewritten` has the delete files that are others now (`REWRITTEN_DELETES`).
    """
    entries = manifest.entries
    moved = _with(entries, "location", prefixes.moved_column(entries["location"]))
    references = prefixes.moved_column(entries["referenced_data_file"])
    moved = _with(moved, "referenced_data_file", references)
    if manifest.row["content"]:
        moved = _moved_deletes(moved, entries["location"], prefixes, rewritten)
    staged = prefixes.staged(manifest.location)
    made = write_manifest(staged, moved, _manifest_header(manifest), storage)
    return int(made["manifest_length"][0].as_py())


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _manifest_header(manifest: RawManifest) -> ManifestHeader:
    said = manifest.header.metadata
    for name, kind in (("schema", dict), ("partition-spec", list)):
        if not isinstance(_parsed(said.get(name, "")), kind):
            raise CorruptTableError(manifest.location, f"it does not say its {name}")
    version = said.get("format-version", "1")
    if version not in _VERSIONS:
        raise CorruptTableError(manifest.location, f"it has the format version {version[:20]}")
    return ManifestHeader(
        format_version=int(version),
        content=manifest.row["content"],
        snapshot_id=manifest.row["added_snapshot_id"],
        spec_id=manifest.row["partition_spec_id"],
        schema_json=said["schema"],
        spec_json=said["partition-spec"],
        codec=manifest.header.codec,
    )


def _moved_deletes(
    moved: pa.Table, before: pa.ChunkedArray, prefixes: Prefixes, rewritten: pa.Table
) -> pa.Table:
    """Return delete entries with what changed of the files: names, formats, sizes, path bounds."""
    places = pc.index_in(before, one_array(rewritten["location"]))
    for name, source in (
        ("location", "new_location"),
        ("file_format", "file_format"),
        ("file_size_in_bytes", "file_size_in_bytes"),
    ):
        said = rewritten[source].take(places)
        moved = _with(moved, name, pc.coalesce(said, moved[name]))
    is_rewritten = pc.and_(pc.is_valid(places), pc.not_equal(moved["file_format"], "PUFFIN"))
    for name in ("column_sizes", "split_offsets"):  # these are of the file before
        kind = moved.schema.field(name).type
        moved = _with(moved, name, pc.if_else(is_rewritten, pa.scalar(None, kind), moved[name]))
    positions = pc.equal(moved["content"], int(Content.POSITION_DELETES))
    for name in ("lower_bounds", "upper_bounds"):
        moved = _with(moved, name, _moved_bounds(moved[name], positions, prefixes))
    return moved


def _moved_bounds(
    bounds: pa.ChunkedArray, positions: pa.ChunkedArray, prefixes: Prefixes
) -> pa.Array:
    """Return bounds in which those of paths are below the new prefix, or left out."""
    array = one_array(bounds)
    keys, values = np.asarray(array.keys), array.items
    owners = np.repeat(np.arange(len(array)), np.diff(np.asarray(array.offsets)))
    of_paths = (keys == FILE_PATH_ID) & np.asarray(positions)[owners]
    if not of_paths.any():
        return array
    unique = values.filter(pa.array(of_paths)).dictionary_encode()
    known = [prefixes.moved_bound(one) for one in unique.dictionary.to_pylist()]
    changed = pa.array(known, pa.binary()).take(unique.indices)
    replaced = pc.replace_with_mask(values, pa.array(of_paths), changed)
    kept = np.asarray(replaced.is_valid())
    counts = np.bincount(owners[kept], minlength=len(array))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    made = pa.MapArray.from_arrays(
        pa.array(offsets), pa.array(keys[kept], pa.int32()), replaced.filter(pa.array(kept)), BOUNDS
    )
    return pc.if_else(array.is_valid(), made, pa.scalar(None, BOUNDS))


def _with(table: pa.Table, name: str, values: Any) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(name), values)
