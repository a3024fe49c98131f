"""Delete files that name data files, rewritten with other prefixes, in tasks.

Comes in: position delete files and Puffin files of deletion vectors. Goes out: staged copies, and a
row for each (`REWRITTEN_DELETES`). Position deletes become Parquet whatever they were; vectors stay
where they are within their file. Tasks load this module, so it imports no PyIceberg.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.codecs.position_delete import write_positions
from rowlake.codecs.puffin import described_anew, read_footer
from rowlake.iceberg.path_rewrite import REWRITTEN_DELETES
from rowlake.scan.deletes import all_positions
from rowlake.secrets import redacted_repr
from rowlake.storage.files import Storage
from rowlake.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rowlake.iceberg.prefixes import Prefixes
    from rowlake.model.files import DeleteFile

_REFERENCED = "referenced-data-file"


@dataclass(frozen=True)
class PathTask:
    """Delete files to rewrite in one task; of a Puffin file any one vector stands for all."""

    files: tuple[DeleteFile, ...]
    prefixes: Prefixes
    io_properties: Mapping[str, str]

    __repr__ = redacted_repr


def path_kernel(task: PathTask) -> Iterator[pa.RecordBatch]:
    """Yield a row per file that was rewritten."""
    storage = Storage(task.io_properties)
    rows = [
        (_vectors if delete.is_vector else _positions)(delete, task.prefixes, storage)
        for delete in task.files
    ]
    yield pa.RecordBatch.from_pylist(rows, schema=REWRITTEN_DELETES)


def new_name(location: str, file_format: str) -> str:
    """Return the location of a rewritten delete file, before its prefix changes."""
    return location if file_format in ("PARQUET", "PUFFIN") else f"{location}.parquet"


def _positions(delete: DeleteFile, prefixes: Prefixes, storage: Storage) -> dict[str, object]:
    found = all_positions(delete, storage)
    moved = {prefixes.moved(path): positions for path, positions in found.items()}
    name = new_name(delete.location, delete.file_format)
    written = write_positions(prefixes.staged(name), moved, storage)
    return _row(delete, prefixes.moved(name), "PARQUET", written.file_size_in_bytes)


def _vectors(delete: DeleteFile, prefixes: Prefixes, storage: Storage) -> dict[str, object]:
    blobs = []
    for blob in read_footer(delete.location, storage):
        said = dict(blob.properties)
        if _REFERENCED in said:
            said[_REFERENCED] = prefixes.moved(said[_REFERENCED])
        blobs.append(replace(blob, properties=said))
    before = storage.read(delete.location)
    data = described_anew(before, blobs, created_by=f"rowlake {__version__}")
    storage.write(prefixes.staged(delete.location), data)
    return _row(delete, prefixes.moved(delete.location), "PUFFIN", len(data))


def _row(delete: DeleteFile, location: str, file_format: str, size: int) -> dict[str, object]:
    return {
        "location": delete.location,
        "new_location": location,
        "file_format": file_format,
        "file_size_in_bytes": size,
    }
