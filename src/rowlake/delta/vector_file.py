"""Files of deletion vectors (PROTOCOL.md, "Deletion Vector Format").

Comes in: bitmaps of deleted rows by data file. Goes out: one `deletion_vector_<uuid>.bin` in the
table's folder, and a descriptor for each bitmap. Layout of the file:

- 0, 1 byte: version of the format, 1
- then for each vector, at the `offset` of its descriptor: length (4 bytes, big-endian), magic and
  bitmap, CRC-32 of them (4 bytes, big-endian): a blob of `rowlake.codecs.deletion_vector`
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlake.codecs import deletion_vector, z85
from rowlake.errors import UnsupportedFeatureError
from rowlake.storage.locations import join

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyroaring import BitMap64

    from rowlake.storage.files import Storage

VERSION = b"\x01"
FRAME_BYTES = 8  # length before and checksum after a vector
MOST_BYTES = 2**31 - 1  # offsets are 32 bits wide


@dataclass(frozen=True)
class VectorDescriptor:
    """Where a deletion vector is and how many rows it marks; `size` is without its frame."""

    storage_type: str
    path: str
    size: int
    cardinality: int
    offset: int | None = None

    def json(self) -> dict[str, Any]:
        """Return the `deletionVector` of an add."""
        found = {
            "storageType": self.storage_type,
            "pathOrInlineDv": self.path,
            "offset": self.offset,
            "sizeInBytes": self.size,
            "cardinality": self.cardinality,
        }
        return {name: one for name, one in found.items() if one is not None}


def vector_location(folder: str, number: uuid.UUID) -> str:
    """Return where the file of vectors with a UUID is."""
    return join(folder, f"deletion_vector_{number}.bin")


def write_vectors(
    vectors: Mapping[str, BitMap64], folder: str, storage: Storage
) -> tuple[str, dict[str, VectorDescriptor]]:
    """Write the vectors of data files (by location) to one file; return it and the descriptors.

    Raises UnsupportedFeatureError where they take more than 2 GB: split them then.
    """
    number = uuid.uuid4()
    content, found = vector_content(vectors, number)
    location = vector_location(folder, number)
    storage.write(location, content)
    return location, found


def vector_content(
    vectors: Mapping[str, BitMap64], number: uuid.UUID
) -> tuple[bytes, dict[str, VectorDescriptor]]:
    """Return the bytes of a file of vectors, and the descriptors."""
    parts, offset, found = [VERSION], len(VERSION), {}
    path = z85.encode(number.bytes)
    for location, positions in vectors.items():
        blob = deletion_vector.encode(positions)
        size = len(blob) - FRAME_BYTES
        if offset + len(blob) > MOST_BYTES:
            raise UnsupportedFeatureError(
                f"Cannot write the deletion vectors of {len(vectors):,} files to one file: they "
                f"take more than {MOST_BYTES:,} bytes."
            )
        found[location] = VectorDescriptor("u", path, size, len(positions), offset)
        parts.append(blob)
        offset += len(blob)
    return b"".join(parts), found
