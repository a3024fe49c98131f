"""Other tables among the files of one: their folders are left alone.

Comes in: the metadata files that a listing met and that the table does not know. Goes out: the
folders to leave alone. A folder with metadata files of its own is another table (or a copy of
this one), and so is what lies beside it: `<folder>/metadata/…` makes `<folder>` a table.

Metadata files that lie where the table's own do are what failed commits and old versions left,
as long as they carry the table's id. Where one carries another's, two tables share a location:
nothing tells whose a data file is, and nothing may be removed.
"""

from __future__ import annotations

import re
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError, MissingFileError, shown
from rowlake.maintain.cleanup.orphan_places import is_inside

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rowlake.model.handle import TableHandle
    from rowlake.storage.files import Storage

_THREADS = 16
# The id is among the first fields that writers write; few files are read further than this.
_HEAD_BYTES = 64 * 1024
_ID = re.compile(rb'"table-uuid"\s*:\s*"([^"]*)"')
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31
VERSION_HINT = "version-hint.text"


def foreign_folders(
    handle: TableHandle, strays: Sequence[tuple[str, str]], own: Collection[str]
) -> list[str]:
    """Return the paths of folders that belong to other tables.

    `strays` are (location, path) of metadata files that the table does not know, `own` the paths
    of the folders that have those that it does. Raises InvalidStatementError where another table
    shares the folder of this one.
    """
    beside = [one for one in strays if _is_beside_own(_parent(one[1]), own)]
    for (_, path), found in zip(beside, _ids(beside, handle.storage), strict=True):
        if found is not None and found != handle.uuid:
            raise InvalidStatementError(
                f"Cannot remove orphan files of {handle.name}: {path} is of another table (id "
                f"{found}), so two tables share this folder and nothing tells whose files are "
                f"whose. No file was removed. Move one of them, or name a location with files of "
                f"{handle.name} only."
            )
    folders = {_parent(path) for _, path in strays}
    return sorted({_root(folder) for folder in folders if not _is_beside_own(folder, own)})


def foreign_logs(
    handle: TableHandle, logs: Sequence[str], own: Collection[str], *, force: bool
) -> list[str]:
    """Return the folders of tables of other formats, by the folders of their logs.

    Where such a table is in the folder of this one, both may have the same files, or each its
    own: that is refused, but by force.
    """
    folders = [_parent(log) for log in logs]
    shared = [folder for folder in folders if any(is_inside(one, [folder]) for one in own)]
    if shared and not force:
        raise InvalidStatementError(
            f"Cannot remove orphan files of {handle.name}: {shown(logs)} is the log of a table of "
            f"another format in the same folder, whose files would be taken for orphans. No file "
            f"was removed. Remove that log if the table is gone; force=True goes on."
        )
    return sorted(set(folders) - set(shared))


def _is_beside_own(folder: str, own: Collection[str]) -> bool:
    """Return whether a folder has metadata of the table, or would take such a folder with it."""
    return folder in own or any(is_inside(one, [_root(folder)]) for one in own)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _root(folder: str) -> str:
    above, _, name = folder.rpartition("/")
    return above if name == "metadata" else folder


def _ids(files: Sequence[tuple[str, str]], storage: Storage) -> list[str | None]:
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(lambda one: table_id(one[0], storage), files))


def table_id(location: str, storage: Storage) -> str | None:
    """Return the id of the table that a metadata file is of; None where the file is a fragment."""
    if location.endswith(f"/{VERSION_HINT}"):
        return None
    try:
        with storage.open_input(location) as stream:
            head = stream.read(_HEAD_BYTES)
            found = _ID.search(_plain(head)) or _ID.search(_plain(head + stream.readall()))
    except MissingFileError:
        return None
    return found[1].decode("utf-8", "replace") if found else None


def _plain(data: bytes) -> bytes:
    """Return what can be read of bytes that may be compressed, and may be cut."""
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        return zlib.decompressobj(_GZIP_WINDOW).decompress(data)
    except zlib.error:
        return b""
