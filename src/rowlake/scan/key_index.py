"""Look keys up in the index of a data file: positions of rows that may have them.

Comes in: hashes of keys and a data file. Goes out: sorted positions, which hold all rows with such
keys and maybe a few others, or None: the file has no index that can be used, and must be scanned.
What is wrong with an index is never an error. Headers and directories are cached per process; a
replaced index fails its checksums.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowlake.codecs.key_index import IndexedFile, decode_head
from rowlake.errors import RowlakeError
from rowlake.model.key_index import index_location
from rowlake.scan.cache import ByteLimitedCache
from rowlake.storage.locations import split
from rowlake.storage.ranges import read_ranges
from rowlake.storage.tally import count_read

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rowlake.codecs.key_index import KeyIndex
    from rowlake.storage.files import Storage
    from rowlake.write.key_index import IndexKeys

    Numbers = NDArray[np.int64]
    Hashes = NDArray[np.uint64]

LIMIT_IN_BYTES = 128 * 1024 * 1024
_FIRST_READ = 64 * 1024
_DAMAGE = (RowlakeError, OSError, pa.ArrowException, ValueError)

_heads: ByteLimitedCache[KeyIndex] = ByteLimitedCache(
    LIMIT_IN_BYTES, lambda index: index.size_in_memory
)


def clear_key_indexes() -> None:
    """Forget all indexes."""
    _heads.clear()


def find_rows(
    location: str,
    file_size_in_bytes: int,
    record_count: int,
    keys: IndexKeys,
    hashes: Hashes,
    storage: Storage,
) -> Numbers | None:
    """Return the positions of a data file's rows that may have keys with these hashes."""
    place = index_location(location)
    try:
        identity = storage.identity(place)
        with storage.open_input(place) as stream:
            key = (place, identity, keys)
            index = _heads.get_or_make(key, lambda: _head(place, stream))
            if not _is_of(index, location, file_size_in_bytes, record_count, keys):
                return None
            is_local = split(place).is_local
            return index.find(hashes, partial(read_ranges, stream, is_local=is_local))
    except _DAMAGE:
        return None


def has_rows_indexed(
    location: str, file_size_in_bytes: int, record_count: int, keys: IndexKeys, storage: Storage
) -> bool:
    """Return whether a data file has an index that can be used."""
    none = np.empty(0, np.uint64)
    return find_rows(location, file_size_in_bytes, record_count, keys, none, storage) is not None


def _is_of(index: KeyIndex, location: str, size: int, rows: int, keys: IndexKeys) -> bool:
    """Return whether an index is that of a file and of some keys."""
    return index.file == IndexedFile(
        location, size, rows, keys.field_ids, keys.families, keys.names, keys.mapped
    )


def _head(place: str, stream: pa.NativeFile) -> KeyIndex:
    size = stream.size()

    def read(offset: int, length: int) -> bytes:
        found: bytes = stream.read_at(length, offset)
        count_read(len(found))
        return found

    return decode_head(place, size, read(0, min(size, _FIRST_READ)), read)
