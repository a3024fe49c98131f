"""An object store in memory behind `s3://`, `s3a://` and `s3n://`: its state is a dict.

States are copied at no cost, so that a test may begin each of many trials from the same lake. A
modification time may be anything, also unknown. `steps` are called before every call that changes
or lists the store, with its kind and its location: a test does there what others do meanwhile.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

from rowlake.storage import files, filesystems, s3
from rowlake.storage.locations import S3

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rowlake.storage.locations import Parts


@dataclass(frozen=True)
class Blob:
    """One object; `modified_ms` is None where the store does not tell."""

    data: bytes
    modified_ms: int | None = 0


@dataclass
class MemoryStore(fs.FileSystemHandler):
    """Objects by `bucket/key`."""

    blobs: dict[str, Blob] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    step: Callable[[str, str], None] | None = None
    now_ms: int = 0
    folders: set[str] = field(default_factory=set)

    def _tell(self, kind: str, path: str) -> None:
        if self.step is not None:
            self.step(kind, path)

    def put(self, path: str, data: bytes) -> None:
        self.blobs[path] = Blob(data, self.now_ms)

    def remove(self, paths: Sequence[str]) -> None:
        self._tell("delete", paths[0])
        for path in paths:
            self.blobs.pop(path, None)
            self.deleted.append(path)

    # -- what pyarrow asks for

    def get_type_name(self) -> str:
        return "memory"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        return [self._info(path) for path in paths]

    def _info(self, path: str) -> fs.FileInfo:
        found = self.blobs.get(path)
        if found is not None:
            when = None if found.modified_ms is None else found.modified_ms * 10**6
            return fs.FileInfo(path, fs.FileType.File, size=len(found.data), mtime_ns=when)
        is_folder = (
            "/" not in path
            or path in self.folders
            or any(one.startswith(f"{path}/") for one in self.blobs)
        )
        return fs.FileInfo(path, fs.FileType.Directory if is_folder else fs.FileType.NotFound)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        self._tell("list", selector.base_dir)
        base = selector.base_dir.rstrip("/") + "/"
        below = [path for path in self.blobs if path.startswith(base)]
        if selector.recursive:
            return [self._info(path) for path in below]
        names = dict.fromkeys(base + path[len(base) :].partition("/")[0] for path in below)
        return [self._info(path) for path in names]

    def open_input_file(self, path: str) -> Any:
        if path not in self.blobs:
            raise FileNotFoundError(path)
        return pa.BufferReader(self.blobs[path].data)

    open_input_stream = open_input_file

    def open_output_stream(self, path: str, metadata: Any = None) -> Any:
        return pa.PythonFile(_Upload(self, path), mode="w")

    def delete_file(self, path: str) -> None:
        self.remove([path])

    def create_dir(self, path: str, recursive: bool) -> None:
        self.folders.add(path.rstrip("/"))

    def _refuse(self, *_: Any) -> None:
        raise NotImplementedError

    delete_dir = delete_dir_contents = delete_root_dir_contents = _refuse
    move = copy_file = open_append_stream = _refuse

    # -- what rowlake asks of S3 itself

    def create(self, bucket: str, key: str, data: bytes, properties: Mapping[str, str]) -> bool:
        self._tell("create", f"{bucket}/{key}")
        if f"{bucket}/{key}" in self.blobs:
            return False
        self.put(f"{bucket}/{key}", data)
        return True

    def delete(self, bucket: str, keys: Sequence[str], properties: Mapping[str, str]) -> list[str]:
        self.remove([f"{bucket}/{key}" for key in keys])
        return []


class _Upload:
    """A file that is there when it is closed."""

    def __init__(self, store: MemoryStore, path: str) -> None:
        self._store, self._path, self._parts = store, path, []
        self.closed = False

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(self._parts[-1])

    def flush(self) -> None:
        pass

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        return sum(map(len, self._parts))

    def close(self) -> None:
        if not self.closed:
            self._store.put(self._path, b"".join(self._parts))
        self.closed = True


@contextmanager
def memory_s3(monkeypatch: Any) -> Iterator[MemoryStore]:
    """Let every S3 location mean an object in memory."""
    store = MemoryStore()
    opened = fs.PyFileSystem(store)
    known = filesystems.filesystem_of

    def filesystem_of(parts: Parts, properties: Mapping[str, str]) -> fs.FileSystem:
        return opened if parts.scheme in S3 else known(parts, properties)

    with monkeypatch.context() as patch:
        patch.setattr(files, "filesystem_of", filesystem_of)
        patch.setattr(s3, "create", store.create)
        patch.setattr(s3, "delete", store.delete)
        yield store
