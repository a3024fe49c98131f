"""Files at locations of any scheme: read, write, put-if-absent, list, delete.

Comes in: a location as table metadata spells it, and the properties that open it. Goes out: bytes
and pyarrow streams. Invariant: failures are `StorageError`s with the location; a file written by
`write` or `create` exists completely or not at all.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyarrow import fs

from rowlake.deferred import deferred
from rowlake.errors import RowlakeError, StorageError, UnsupportedFeatureError
from rowlake.secrets import cause_without_secrets
from rowlake.storage import local, s3
from rowlake.storage.failures import storage_failure
from rowlake.storage.filesystems import filesystem_of, io_properties
from rowlake.storage.locations import LOCAL, S3, Parts, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa

    from rowlake.storage import listing
else:  # loaded on first use: showing a table lists no folder
    (listing,) = deferred("rowlake.storage", "listing")

_DELETING_THREADS = 16
# Files of one folder are deleted one after the other, in whatever thread.
_LOCAL_DELETING_THREADS = 2
_DELETED_PER_REQUEST = 1000


@dataclass(frozen=True)
class FileInfo:
    """One file of a listing; `modified_ms` counts from the epoch."""

    location: str
    size_in_bytes: int
    modified_ms: int


class Storage:
    """The files that a set of io properties (PyIceberg's names) opens.

    Small and picklable: file systems are opened on first use and cached per process.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.properties: dict[str, str] = io_properties(properties or {})

    def __repr__(self) -> str:
        return f"Storage({', '.join(sorted(self.properties))})"

    def resolve(self, location: str) -> tuple[fs.FileSystem, str]:
        """Return the file system of a location and the path in it."""
        with _failing(location, self.properties):
            parts = split(location)
            return filesystem_of(parts, self.properties), parts.path

    def identity(self, location: str) -> tuple[object, ...]:
        """Return what tells a file from others that have, or had, the same location.

        Locally its inode and time of change; elsewhere the properties that lead to it, such as the
        endpoint. Hashable.
        """
        with _failing(location, self.properties):
            parts = split(location)
            if parts.is_local:
                return local.identity(parts.path)
        return tuple(sorted(self.properties.items()))

    def open_input(self, location: str) -> pa.NativeFile:
        """Open a file for random access; on this machine, only a regular file."""
        with _failing(location, self.properties):
            parts = split(location)
            if parts.is_local:
                _check_regular(location, parts.path)
            return filesystem_of(parts, self.properties).open_input_file(parts.path)

    def open_output(self, location: str) -> pa.NativeFile:
        """Open a new file for writing; creates parent folders on storage that has folders."""
        parts = split(location)
        with _failing(location, self.properties):
            if parts.is_local:
                local.with_parent(parts.path)
            # Without compression="…": pyarrow must not guess one from the name.
            return filesystem_of(parts, self.properties).open_output_stream(
                parts.path, compression=None
            )

    def read(self, location: str) -> bytes:
        """Return all bytes of a file."""
        with self.open_input(location) as stream, _failing(location, self.properties):
            data: bytes = stream.read()
        return data

    def write(self, location: str, data: bytes) -> None:
        """Write a file, replacing an existing one."""
        parts = split(location)
        if parts.is_local:
            with _failing(location, self.properties):
                return local.write(parts.path, data)
        with _failing(location, self.properties), self.open_output(location) as stream:
            stream.write(data)
        return None

    def create(self, location: str, data: bytes) -> bool:
        """Write a file unless it exists, atomically among all writers; False if it exists.

        Raises UnsupportedFeatureError if the storage cannot guarantee that.
        """
        parts = _with_create(location)
        with _failing(location, self.properties):
            if parts.is_local:
                return local.create(parts.path, data)
            return s3.create(parts.authority, _key(parts), data, self.properties)

    def validate_create(self, location: str) -> None:
        """Refuse a location where `create` would be refused; an S3 server is tried once."""
        parts = _with_create(location)
        if not parts.is_local:
            with _failing(location, self.properties):
                s3.validate_create(parts.authority, _key(parts), self.properties)

    def exists(self, location: str) -> bool:
        """Return whether a file or folder exists."""
        filesystem, path = self.resolve(location)
        with _failing(location, self.properties):
            return bool(filesystem.get_file_info(path).type != fs.FileType.NotFound)

    def delete(self, locations: Iterable[str], *, threads: int | None = None) -> list[str]:
        """Delete files, best effort; return those that could not be deleted.

        A missing file counts as deleted. `threads` applies to storage that deletes one file per
        call.
        """
        by_store: dict[tuple[str, str], list[tuple[str, str]]] = {}
        left: list[str] = []
        for location in locations:
            if "\0" in location:  # no file can have this path
                left.append(location)
                continue
            store, path = _place_of(location)
            by_store.setdefault(store, []).append((location, path))
        for (scheme, authority), some in by_store.items():
            if scheme in S3:
                left.extend(self._delete_objects(authority, [location for location, _ in some]))
            elif scheme == LOCAL:
                left.extend(_delete_files(local.delete, some, threads or _LOCAL_DELETING_THREADS))
            else:
                remove = filesystem_of(split(some[0][0]), self.properties).delete_file
                left.extend(_delete_files(remove, some, threads or _DELETING_THREADS))
        return left

    def _delete_objects(self, bucket: str, locations: list[str]) -> list[str]:
        left: list[str] = []
        by_key = {_key(split(location)): location for location in locations}
        keys = list(by_key)
        for start in range(0, len(keys), _DELETED_PER_REQUEST):
            some = keys[start : start + _DELETED_PER_REQUEST]
            left.extend(by_key[key] for key in s3.delete(bucket, some, self.properties))
        return left

    def folders(self, prefix: str) -> list[str]:
        """Return the names of the folders right below a folder, sorted."""
        return sorted(
            found.base_name
            for found in self._find(prefix, recursive=False)
            if found.type == fs.FileType.Directory
        )

    def children(self, prefix: str) -> list[FileInfo]:
        """Return the files right below a folder."""
        return [
            _file_info(split(prefix), found)
            for found in self._find(prefix, recursive=False)
            if found.type == fs.FileType.File
        ]

    def _find(self, prefix: str, *, recursive: bool) -> list[fs.FileInfo]:
        filesystem, path = self.resolve(prefix)
        selector = fs.FileSelector(path, allow_not_found=True, recursive=recursive)
        with _failing(prefix, self.properties):
            found: list[fs.FileInfo] = filesystem.get_file_info(selector)
            if not found and split(prefix).scheme in S3:
                _check_bucket(filesystem, split(prefix).authority)
        return found

    def _find_without_links(self, prefix: str, *, recursive: bool) -> list[local.Entry]:
        with _failing(prefix, self.properties):
            return local.find(split(prefix).path, recursive=recursive)

    def make_folder(self, location: str) -> None:
        """Create a folder and its parents; it may exist."""
        filesystem, path = self.resolve(location)
        with _failing(location, self.properties):
            filesystem.create_dir(path, recursive=True)

    def delete_folder(self, location: str) -> None:
        """Delete a folder and its contents; it may be missing."""
        parts = split(location)
        with _failing(location, self.properties):
            if parts.is_local:
                return local.delete_folder(parts.path)
            filesystem = filesystem_of(parts, self.properties)
            if filesystem.get_file_info(parts.path).type == fs.FileType.Directory:
                filesystem.delete_dir(parts.path)
        return None

    def delete_empty_folders(self, location: str) -> None:
        """Delete empty folders, from the deepest up to this one; it may be missing."""
        parts = split(location)
        with _failing(location, self.properties):
            if parts.is_local:
                local.delete_empty_folders(parts.path)
            elif not any(True for _ in self.list(location)):
                self.delete_folder(location)

    def list(self, prefix: str) -> Iterator[FileInfo]:
        """Yield every file below a folder; nothing if the folder is missing."""
        for found in self._find(prefix, recursive=True):
            if found.type == fs.FileType.File:
                yield _file_info(split(prefix), found)

    def listing(
        self,
        prefix: str,
        *,
        enters: Callable[[str], bool] = lambda _: True,
        is_flat: bool = False,
        on_link: Callable[[str], None] = lambda _: None,
    ) -> Iterator[pa.Table]:
        """Yield every file below a folder as tables of `listing.LISTING`.

        Folders near the top whose name `enters` refuses are skipped. Symbolic links are not
        followed; `on_link` is called with each one.
        """
        find = self._find_without_links if split(prefix).is_local else self._find
        return listing.list_columns(
            prefix,
            lambda at, deep: find(at, recursive=deep),
            enters,
            is_flat=is_flat,
            on_link=on_link,
        )


def _with_create(location: str) -> Parts:
    """Return the parts of a location whose storage has an atomic put-if-absent."""
    parts = split(location)
    if parts.is_local or parts.scheme in S3:
        return parts
    raise UnsupportedFeatureError(
        f"Cannot commit to {location}: {parts.scheme}:// has no atomic put-if-absent here, "
        f"so concurrent commits could overwrite each other. Use a catalog (SQL, REST, …)."
    )


@contextmanager
def _failing(location: str, properties: Mapping[str, str]) -> Iterator[None]:
    try:
        yield
    except RowlakeError:
        raise
    except Exception as error:
        is_obstore = type(error).__module__.split(".")[0] == "obstore"
        if not is_obstore and not isinstance(error, (OSError, ValueError)):
            raise
        cause = cause_without_secrets(error, properties)
        raise storage_failure(location, error, properties) from cause


def _check_regular(location: str, path: str) -> None:
    kind = local.odd_kind(path)
    if kind is not None:
        advice = "Only regular files are read; check the metadata that names it."
        raise StorageError(location, f"it is {kind}", advice=advice)


def _check_bucket(filesystem: fs.FileSystem, bucket: str) -> None:
    # pyarrow lists a missing bucket as an empty one.
    if filesystem.get_file_info(bucket).type == fs.FileType.NotFound:
        raise OSError("bucket does not exist")


def _place_of(location: str) -> tuple[tuple[str, str], str]:
    """Return the scheme and authority of a location, and its path there."""
    if location.startswith("/"):  # splitting very many paths takes longer than deleting them
        return (LOCAL, ""), location
    parts = split(location)
    return (parts.scheme, parts.authority), parts.path


def _delete_files(
    remove: Callable[[str], None], files: list[tuple[str, str]], threads: int
) -> list[str]:
    """Delete files (location, path) one by one; return the locations of what is left."""

    def delete_some(some: list[tuple[str, str]]) -> list[str]:
        return [location for location, path in some if not _is_removed(remove, path)]

    # One call per thread: submitting each file by itself costs more than deleting it.
    shares = [files[start::threads] for start in range(min(threads, len(files)))]
    if len(shares) == 1:
        return delete_some(shares[0])
    with ThreadPoolExecutor(len(shares)) as pool:
        return [location for left in pool.map(delete_some, shares) for location in left]


def _is_removed(remove: Callable[[str], None], path: str) -> bool:
    try:
        remove(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _key(parts: Parts) -> str:
    return parts.path.removeprefix(parts.authority).removeprefix("/")


def _file_info(parts: Parts, found: fs.FileInfo) -> FileInfo:
    modified = found.mtime_ns
    return FileInfo(
        parts.location_of(found.path), found.size or 0, 0 if modified is None else modified // 10**6
    )
