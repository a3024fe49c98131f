"""Parsed manifests, kept in memory and, for remote tables, on local disk.

Comes in: tables that were read from manifests. Goes out: the same tables. Invariants: both stores
are bounded in bytes and drop what was used longest ago; a key names bytes that never change, so
nothing is ever stale; several processes may share the folder (files appear whole, by rename, and
one that cannot be read counts as absent).
"""

from __future__ import annotations

import hashlib
import os
import threading
import uuid
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc

MEMORY_BYTES = 512 * 1024 * 1024
DISK_BYTES = 2 * 1024 * 1024 * 1024
FOLDER_VARIABLE = "ROWLAKE_CACHE_DIR"
_FORMAT = "1"  # part of every file's name: raise it when the layout of files changes
_KEPT_SHARE = 0.8  # how full trimming leaves the folder


@dataclass(frozen=True)
class ManifestKey:
    """What a parsed manifest depends on: its bytes, what it inherits, the type of its partition."""

    location: str
    manifest_length: int
    sequence_number: int | None
    first_row_id: int | None
    partition: str

    @property
    def file_name(self) -> str:
        """The name of its file in a cache folder."""
        text = repr((_FORMAT, *self.__dict__.values()))
        return hashlib.sha256(text.encode()).hexdigest() + ".arrow"


class ManifestCache:
    """Two bounded stores; `folder` None keeps nothing on disk."""

    def __init__(
        self,
        *,
        memory_bytes: int = MEMORY_BYTES,
        disk_bytes: int = DISK_BYTES,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self.memory_bytes = memory_bytes
        self.disk_bytes = disk_bytes
        self.folder = None if folder is None else Path(folder)
        self._tables: OrderedDict[ManifestKey, pa.Table] = OrderedDict()
        self._held_bytes = 0
        self._written_bytes = 0
        self._lock = threading.Lock()

    @property
    def held_bytes(self) -> int:
        """How many bytes of tables are in memory."""
        return self._held_bytes

    def find(self, key: ManifestKey, layout: pa.Schema) -> pa.Table | None:
        """Return the table of a manifest, None where it, or a column of the layout, is missing."""
        with self._lock:
            table = self._tables.get(key)
            if table is not None:
                self._tables.move_to_end(key)
        if table is not None and _holds(table, layout):
            return _select(table, layout)
        table = self._load(key, layout)
        if table is None:
            return None
        self._keep(key, table)
        return _select(table, layout)

    def has(self, key: ManifestKey, layout: pa.Schema) -> bool:
        """Return whether `find` is likely to find a table, without reading any file."""
        table = self.held(key)
        if table is not None:
            return _holds(table, layout)
        return self.folder is not None and (self.folder / key.file_name).exists()

    def held(self, key: ManifestKey) -> pa.Table | None:
        """Return the table that is in memory, whatever columns it has."""
        with self._lock:
            return self._tables.get(key)

    def put(self, key: ManifestKey, table: pa.Table, *, on_disk: bool = True) -> None:
        """Keep a table; with `on_disk` also for other processes, where there is a folder."""
        self._keep(key, table)
        if on_disk and self.folder is not None:
            # A full or read-only disk must not fail what could be read.
            with suppress(OSError):
                self._store(key, table)

    def clear(self) -> None:
        """Forget what is in memory; files stay."""
        with self._lock:
            self._tables.clear()
            self._held_bytes = 0

    def _keep(self, key: ManifestKey, table: pa.Table) -> None:
        size = table.nbytes  # counted from every buffer of every column
        with self._lock:
            old = self._tables.pop(key, None)
            if old is not None:
                self._held_bytes -= old.nbytes
            if size > self.memory_bytes:
                return
            self._tables[key] = table
            self._held_bytes += size
            while self._held_bytes > self.memory_bytes:
                _, dropped = self._tables.popitem(last=False)
                self._held_bytes -= dropped.nbytes

    def _load(self, key: ManifestKey, layout: pa.Schema) -> pa.Table | None:
        if self.folder is None:
            return None
        path = self.folder / key.file_name
        try:
            with pa.memory_map(str(path)) as source, ipc.open_file(source) as reader:
                table = reader.read_all()
                table.validate()
            os.utime(path)
        except (OSError, pa.ArrowException):
            return None
        return table if _holds(table, layout) else None

    def _store(self, key: ManifestKey, table: pa.Table) -> None:
        folder = self.folder
        if folder is None:
            return
        # Manifests hold values of rows (bounds, partitions), which other users may not see.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = folder / key.file_name
        part = target.with_suffix(f".{uuid.uuid4().hex}.part")
        options = ipc.IpcWriteOptions(compression="lz4")
        try:
            with (
                part.open("wb") as sink,
                ipc.new_file(sink, table.schema, options=options) as writer,
            ):
                writer.write_table(table)
            size = part.stat().st_size
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        self._trim(size)

    def _trim(self, added: int) -> None:
        """Remove the files used longest ago; looks at the folder once per tenth of its limit."""
        with self._lock:
            self._written_bytes += added
            if self._written_bytes * 10 < self.disk_bytes:
                return
            self._written_bytes = 0
        if self.folder is None:
            return
        found = []
        for path in [*self.folder.glob("*.arrow"), *self.folder.glob("*.part")]:
            with suppress(OSError):
                state = path.stat()
                found.append((state.st_mtime, state.st_size, path))
        total = sum(size for _, size, _ in found)
        if total <= self.disk_bytes:
            return
        for _, size, path in sorted(found):
            with suppress(OSError):
                path.unlink()
                total -= size
            if total <= self.disk_bytes * _KEPT_SHARE:
                return


def _holds(table: pa.Table, layout: pa.Schema) -> bool:
    return table.schema.equals(layout) or all(
        part.name in table.schema.names and table.schema.field(part.name).type == part.type
        for part in layout
    )


def _select(table: pa.Table, layout: pa.Schema) -> pa.Table:
    if table.schema.names == layout.names:
        return table
    return table.select(layout.names)


@lru_cache(maxsize=1)
def default_cache() -> ManifestCache:
    """Return the cache of this process."""
    folder = os.environ.get(FOLDER_VARIABLE)
    home = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return ManifestCache(folder=Path(folder or f"{home}/rowlake") / "manifests")
