"""Deletion vectors where tables keep them: in Puffin files, in Delta Lake's files, or inline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.codecs import deletion_vector, puffin, z85
from rowlake.errors import CorruptTableError
from rowlake.model.files import DELTA_VECTOR, INLINE_PREFIX, INLINE_VECTOR

if TYPE_CHECKING:
    from pyroaring import BitMap64

    from rowlake.model.files import DeleteFile
    from rowlake.storage.files import Storage

_SHOWN = 40


def read_vector(delete: DeleteFile, storage: Storage) -> BitMap64:
    """Return the positions that a deletion vector marks.

    Raises CorruptTableError where it is damaged or marks another number of rows than stated.
    """
    if delete.file_format == INLINE_VECTOR:
        return _inline(delete)
    offset, size = delete.content_offset, delete.content_size_in_bytes
    if offset is None or size is None:
        cause = "the metadata does not say where the deletion vector is"
        raise CorruptTableError(delete.location, cause)
    blob = puffin.read_blob(delete.location, offset, size, storage)
    is_delta = delete.file_format == DELTA_VECTOR
    decode = deletion_vector.decode_framed if is_delta else deletion_vector.decode
    return decode(blob, delete.location, cardinality=delete.record_count)


def _inline(delete: DeleteFile) -> BitMap64:
    text = delete.location.removeprefix(INLINE_PREFIX)
    place = f"the inline deletion vector of {delete.referenced_data_file} ({text[:_SHOWN]})"
    try:
        data = z85.decode(text)
    except ValueError as error:
        raise CorruptTableError(place, str(error)) from error
    # Z85 pads to a multiple of four bytes; the size says where the vector ends.
    size = len(data) if delete.content_size_in_bytes is None else delete.content_size_in_bytes
    if not 0 <= size <= len(data):
        raise CorruptTableError(place, f"it has {len(data)} bytes, its descriptor says {size}")
    return deletion_vector.decode_bare(data[:size], place, cardinality=delete.record_count)
