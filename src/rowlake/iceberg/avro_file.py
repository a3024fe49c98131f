"""Avro files of a table's metadata, wherever they are, decoded in the way that suits them.

Comes in: a location. Goes out: its rows as an Arrow table, and its header. Large files go to
DataFusion, which reads local files only: remote ones through a copy that is removed at once.
Small files, and those that DataFusion does not read right, are decoded in Python.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pyarrow import fs

from rowlake.errors import CorruptTableError
from rowlake.iceberg.avro_decode import (
    decode_datafusion,
    decode_python,
    has_plain_fixed,
    read_header,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    import pyarrow as pa

    from rowlake.iceberg.avro_decode import Header
    from rowlake.storage.files import Storage

# Below this a file (some hundred entries) is decoded in Python sooner than DataFusion is loaded;
# below the second, sooner than DataFusion starts.
SMALL_FILE_BYTES = 64 * 1024
TINY_FILE_BYTES = 12 * 1024
HEADER_BYTES = 64 * 1024


def decode_file(
    location: str,
    storage: Storage,
    *,
    keep: Collection[int] | None = None,
    length: int | None = None,
) -> tuple[pa.Table, Header]:
    """Return the rows of an Avro file; `keep` has the ids of wanted fields, None means all.

    `length` is what the file must have at least. Raises CorruptTableError for a damaged file.
    """
    filesystem, path = storage.resolve(location)
    if length is None or length < _small_file_bytes() or not is_local(filesystem):
        data = storage.read(location)
        _check_length(len(data), length, location)
        header = read_header(data, location)
        return _decode_bytes(data, header, location, keep), header
    with storage.open_input(location) as stream:
        _check_length(stream.size(), length, location)
        header = read_header(stream.read(HEADER_BYTES), location)
    if has_plain_fixed(header.schema):
        return decode_python(storage.read(location), location, keep), header
    try:
        return decode_datafusion(path, header, location, keep), header
    except CorruptTableError:
        # Names that Avro forbids, or real damage: Python reads the first and names the second.
        return decode_python(storage.read(location), location, keep), header


def is_local(filesystem: fs.FileSystem) -> bool:
    """Return whether paths of a file system are paths of this machine."""
    return isinstance(filesystem, fs.LocalFileSystem)


def _decode_bytes(
    data: bytes, header: Header, location: str, keep: Collection[int] | None
) -> pa.Table:
    if len(data) < _small_file_bytes() or has_plain_fixed(header.schema):
        return decode_python(data, location, keep)
    with tempfile.TemporaryDirectory(prefix="rowlake-") as folder:
        copy = Path(folder) / "file.avro"
        copy.write_bytes(data)
        try:
            return decode_datafusion(str(copy), header, location, keep)
        except CorruptTableError:
            return decode_python(data, location, keep)


def _small_file_bytes() -> int:
    return TINY_FILE_BYTES if "datafusion" in sys.modules else SMALL_FILE_BYTES


def _check_length(found: int, expected: int | None, location: str) -> None:
    if expected is not None and found < expected:
        raise CorruptTableError(
            location, f"it has {found} bytes where the manifest list says {expected}"
        )
