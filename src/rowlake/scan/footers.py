"""Parsed Parquet footers of data files, shared by all tasks of one process.

A worker runs many tasks of a statement, and several may read parts of one data file: its footer is
read and parsed once. Data files never change; a file that is replaced all the same has another size
(on this machine also another inode or time of change) and is read again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.scan.cache import ByteLimitedCache
from rowlake.storage.tally import count_read

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    import pyarrow.parquet as pq

    from rowlake.storage.files import Storage

LIMIT_IN_BYTES = 128 * 1024 * 1024
# A footer is followed by its length and a magic number.
_TAIL = 8
# Parsed footers take six to eight times the bytes that they have in the file.
_PARSED_SIZE = 8


def size_in_memory(footer: pq.FileMetaData) -> int:
    """Return about how many bytes a parsed footer takes."""
    return int(footer.serialized_size) * _PARSED_SIZE


_footers: ByteLimitedCache[pq.FileMetaData] = ByteLimitedCache(LIMIT_IN_BYTES, size_in_memory)


def shared_footer(
    location: str,
    storage: Storage,
    stream: pa.NativeFile,
    parse: Callable[[], pq.FileMetaData],
) -> pq.FileMetaData:
    """Return the footer of an open data file, parsed unless this process did so before."""
    key = (location, stream.size(), storage.identity(location))
    return _footers.get_or_make(key, lambda: counted(parse()))


def counted(footer: pq.FileMetaData) -> pq.FileMetaData:
    """Count the bytes of a footer that was just read."""
    count_read(footer.serialized_size + _TAIL)
    return footer


def clear_footers() -> None:
    """Forget all footers."""
    _footers.clear()
