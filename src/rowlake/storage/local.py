"""Local files: written completely or not at all, and opened only if they are regular files.

Invariant: under its final name a file written by `write` or `create` is complete, whatever happens
during the write; a crash leaves at most a hidden file that nothing reads.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import uuid
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pyarrow import fs

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_FILE, _FOLDER = fs.FileType.File, fs.FileType.Directory
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


def odd_kind(path: str) -> str | None:
    """Return what a path is unless it is a regular file, else None; links are followed.

    Opening a pipe would block until somebody writes, and a device may never end. Raises OSError if
    nothing is there.
    """
    mode = os.stat(path).st_mode  # noqa: PTH116 - to make a Path takes longer than to ask
    if stat.S_ISREG(mode):
        return None
    return _KINDS.get(stat.S_IFMT(mode), "no regular file")


def identity(path: str) -> tuple[int, int]:
    """Return the inode of a file and when it was changed, in ns; links are followed."""
    found = os.stat(path)  # noqa: PTH116 - as above
    return found.st_ino, found.st_mtime_ns


def write(path: str, data: bytes) -> None:
    """Write a file, replacing an existing one."""
    with_parent(path)
    temporary = _written_beside(path, data)
    try:
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path)


def create(path: str, data: bytes) -> bool:
    """Write a file unless it exists; return whether this call created it."""
    if os.path.lexists(path):
        return False
    with_parent(path)
    temporary = _written_beside(path, data)
    try:
        made = _link(temporary, Path(path), data)
    finally:
        temporary.unlink(missing_ok=True)
    if made:
        _sync_folder(path)
    return made


def _link(temporary: Path, final: Path, data: bytes) -> bool:
    try:
        os.link(temporary, final)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _create_in_place(final, data)
    return True


def _create_in_place(final: Path, data: bytes) -> bool:
    # For file systems without hard links: still one winner, but readers may see it grow.
    try:
        descriptor = os.open(final, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "wb") as out:
        _write_and_sync(out.fileno(), data)
    return True


def _written_beside(path: str, data: bytes) -> Path:
    final = Path(path)
    temporary = final.with_name(f".{uuid.uuid4().hex}.tmp")
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as out:
            _write_and_sync(out.fileno(), data)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _write_and_sync(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fsync(descriptor)


def _sync_folder(path: str) -> None:
    try:
        descriptor = os.open(Path(path).parent, os.O_RDONLY)
    except OSError:
        return  # not every file system opens folders; the file itself is safe
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def with_parent(path: str) -> None:
    """Create the parent folders of a file."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)


def delete(path: str) -> None:
    """Delete a file; it may be missing."""
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - to make a Path takes longer than to delete the file


def delete_folder(path: str) -> None:
    """Delete a folder and its contents; it may be missing.

    Links are deleted, never followed: of a folder that is itself a link, only the link is deleted.
    """
    if Path(path).is_symlink():
        delete(str(Path(path)))
    elif os.path.lexists(path):
        shutil.rmtree(path)


def delete_empty_folders(path: str) -> None:
    """Delete empty folders, from the deepest up to this one; follow no link."""
    if Path(path).is_symlink():
        return
    for folder, _, _ in os.walk(path, topdown=False, followlinks=False):
        with suppress(OSError):
            os.rmdir(folder)  # noqa: PTH106 - refuses a folder with anything in it, and a link


class Entry(NamedTuple):
    """One thing in a folder; its names are those of pyarrow's `FileInfo`."""

    path: str
    base_name: str
    type: fs.FileType
    size: int | None = None
    mtime_ns: int | None = None
    is_link: bool = False


def find(path: str, *, recursive: bool) -> list[Entry]:
    """Return the entries of a folder, recursively or not; links are reported, not followed.

    The folder may be missing. Only regular files count as files.
    """
    found: list[Entry] = []
    pending = [path]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                some = [_entry(entry) for entry in entries]
        except FileNotFoundError:
            continue
        found += some
        if recursive:
            pending += [one.path for one in some if one.type is _FOLDER]
    return found


def _entry(entry: os.DirEntry[str]) -> Entry:
    # The folder knows the kind of an entry; only sizes and times are asked of the file.
    if entry.is_file(follow_symlinks=False) and _is_text(entry.name):
        try:
            stat = entry.stat(follow_symlinks=False)
        except FileNotFoundError:  # deleted while it was listed
            return Entry(entry.path, entry.name, fs.FileType.NotFound)
        return Entry(entry.path, entry.name, _FILE, stat.st_size, stat.st_mtime_ns)
    if entry.is_dir(follow_symlinks=False) and _is_text(entry.name):
        return Entry(entry.path, entry.name, _FOLDER)
    return Entry(entry.path, entry.name, fs.FileType.Unknown, is_link=entry.is_symlink())


def _is_text(name: str) -> bool:
    """Return whether a name is valid text; local names may hold any bytes."""
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
