"""Deletion vectors of adds as delete files (PROTOCOL.md, "Deletion Vectors").

The descriptor of an add says where its vector is: `u` in a file of the table named by a UUID, `p`
in a file at an absolute path, `i` in the descriptor itself. Vectors are kept in files as Iceberg
keeps them, so a place, a length and the readers of `rowlake.codecs` are enough.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.codecs import z85
from rowlake.delta.paths import absolute_path, location_of
from rowlake.delta.vector_file import FRAME_BYTES, VectorDescriptor
from rowlake.errors import CorruptTableError
from rowlake.model.files import DELTA_VECTOR, INLINE_PREFIX, INLINE_VECTOR
from rowlake.storage.locations import join

if TYPE_CHECKING:
    from collections.abc import Mapping

UUID_CHARACTERS = 20  # of Z85
FIRST_OFFSET = 1  # after the byte with the version of the file format


def vector_columns(files: pa.Table, table: str) -> Mapping[str, pa.Array | pa.ChunkedArray]:
    """Return columns of `files_schema` that describe the vectors of adds which all have one.

    Many adds share a file of vectors: each distinct path is resolved once.
    """
    kinds = files["storage_type"].combine_chunks()
    keys = pc.binary_join_element_wise(kinds, files["vector_path"].combine_chunks(), "")
    encoded = keys.dictionary_encode()
    places = [_location(key, table) for key in encoded.dictionary.to_pylist()]
    is_inline = pc.equal(kinds, "i")
    size = files["vector_size"]
    offset = pc.if_else(is_inline, None, pc.fill_null(files["vector_offset"], FIRST_OFFSET))
    length = pc.if_else(is_inline, size, pc.add(size, FRAME_BYTES))
    return {
        "location": pa.array(places, pa.string()).take(encoded.indices),
        "file_format": pc.if_else(is_inline, INLINE_VECTOR, DELTA_VECTOR),
        "record_count": files["vector_cardinality"],
        "file_size_in_bytes": pc.add(pc.fill_null(offset, 0), length),
        "referenced_data_file": files["location"],
        "content_offset": offset,
        "content_size_in_bytes": length,
    }


def _location(key: str | None, table: str) -> str:
    """Return where the vector of a descriptor is; the first letter says how to read the rest."""
    kind, path = (key or "")[:1], (key or "")[1:]
    if kind == "i":
        return INLINE_PREFIX + path
    if kind == "p":
        return location_of(path, table)
    if kind != "u":
        raise CorruptTableError(table, f"a deletion vector has the storage type {kind!r}")
    return _uuid_location(path, table)


def _uuid_location(path: str, table: str) -> str:
    prefix, text = path[:-UUID_CHARACTERS], path[-UUID_CHARACTERS:]
    try:
        name = f"deletion_vector_{uuid.UUID(bytes=z85.decode(text))}.bin"
    except ValueError as error:
        cause = f"a deletion vector has the path {path!r}, which names no UUID ({error})"
        raise CorruptTableError(table, cause) from error
    if ".." in prefix.split("/"):
        raise CorruptTableError(table, f"a deletion vector has the path {path!r}")
    return join(table, prefix, name) if prefix else join(table, name)


def descriptor_of(row: Mapping[str, Any], table: str) -> VectorDescriptor:
    """Return the descriptor of a vector that was written (`WRITTEN_FILES`): `u`, else `p`."""
    location, offset = row["location"], row["content_offset"]
    size, cardinality = row["content_size_in_bytes"] - FRAME_BYTES, row["record_count"]
    folder, _, name = location.rpartition("/")
    text = name.removeprefix("deletion_vector_").removesuffix(".bin")
    if folder == table.rstrip("/") and name == f"deletion_vector_{text}.bin":
        path = z85.encode(uuid.UUID(text).bytes)
        return VectorDescriptor("u", path, size, cardinality, offset)
    return VectorDescriptor("p", absolute_path(location), size, cardinality, offset)
