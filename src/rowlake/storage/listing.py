"""Listings as columns: every file below a folder, its size and modification time.

Comes in: a folder, and how to find what is in one. Goes out: tables of `LISTING`, one for each
folder that was listed on its own. Folders near the top are listed in parallel, each with everything
below it. Times that the storage does not report are null.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from rowlake.storage.locations import split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlake.storage.local import Entry
    from rowlake.storage.locations import Parts

    Found = list[fs.FileInfo] | list[Entry]
    Find = Callable[[str, bool], Found]
    OnLink = Callable[[str], None]
    Enters = Callable[[str], bool]

# Large strings: locations of millions of files overflow the 32-bit offsets of plain ones.
LISTING = pa.schema(
    [
        pa.field("location", pa.large_string()),
        pa.field("size_in_bytes", pa.int64()),
        pa.field("modified_ms", pa.int64()),
    ]
)
LOCAL_THREADS = 4
REMOTE_THREADS = 16
# Folders are opened level by level until this many were found, or this many levels opened.
ENOUGH_FOLDERS = 32
LEVELS = 4
_NS_PER_MS = 10**6


def list_columns(
    folder: str, find: Find, enters: Enters, *, is_flat: bool, on_link: OnLink = lambda _: None
) -> Iterator[pa.Table]:
    """Yield the files below a folder.

    `find(location, recursive)` returns what is below a location. `enters(name)` decides whether a
    folder near the top is entered; deeper ones always are. `is_flat` lists everything in one
    sequence of requests, which suits object stores with few files in each of many folders.
    `on_link` is called with symbolic links, if `find` reports them.
    """
    parts = split(folder)
    root = parts.location_of(parts.path.rstrip("/") or "/")
    if is_flat:
        yield _table(parts, find(root, True), on_link)
        return
    with ThreadPoolExecutor(LOCAL_THREADS if parts.is_local else REMOTE_THREADS) as pool:
        pending = [root]
        for _ in range(LEVELS):
            opened = list(pool.map(lambda at: find(at, False), pending))
            yield from (_table(parts, found, on_link) for found in opened)
            pending = [
                _location(parts, one) for some in opened for one in some if _is_entered(one, enters)
            ]
            if not pending or len(pending) >= ENOUGH_FOLDERS:
                break
        yield from pool.map(lambda at: _table(parts, find(at, True), on_link), pending)


def _is_entered(found: fs.FileInfo | Entry, enters: Enters) -> bool:
    return bool(found.type == fs.FileType.Directory) and enters(found.base_name)


def _location(parts: Parts, found: fs.FileInfo | Entry) -> str:
    return parts.location_of(found.path)


def _table(parts: Parts, found: Found, on_link: OnLink) -> pa.Table:
    for one in found:
        if getattr(one, "is_link", False):
            on_link(_location(parts, one))
    files = [one for one in found if one.type == fs.FileType.File]
    if not files:
        return LISTING.empty_table()
    paths = pa.array([one.path for one in files], pa.large_string())
    modified = pa.array([one.mtime_ns for one in files], pa.int64())
    return pa.table(
        [
            _locations(parts, paths),
            pa.array([one.size for one in files], pa.int64()),
            pc.divide(modified, _NS_PER_MS),
        ],
        schema=LISTING,
    )


def _locations(parts: Parts, paths: pa.Array) -> pa.Array:
    """Return the locations of paths that are all below that of `parts`."""
    base = parts.path.rstrip("/")
    rest = pc.utf8_slice_codeunits(paths, len(base))
    return pc.binary_join_element_wise(
        pa.scalar(parts.location_of(base), pa.large_string()),
        rest,
        pa.scalar("", pa.large_string()),
    )
