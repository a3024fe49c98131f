"""Tables of many shapes in memory, and writers that are half-way through a commit to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.table.statistics import PartitionStatisticsFile, StatisticsFile
from pyiceberg.table.update import SetPartitionStatisticsUpdate, SetStatisticsUpdate

import rowlake
from rowlake.catalog.io import StorageFileIO
from rowlake.commit.metadata import commit_metadata
from rowlake.model.partition import PartitionBy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlake.table import Table
    from tests.parts.memory_s3 import Blob, MemoryStore

NAME = "db.t"
PATH = "lake/wh/db/t"
LOCATION = f"s3://{PATH}"
ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("day", pa.string())])
HIDDEN = PartitionBy(("day",), name="_day")


@dataclass(frozen=True)
class Writer:
    """A commit: its files are written first, then its pointer makes it the newest version."""

    name: str
    files: dict[str, Blob]
    pointer: dict[str, Blob]
    live: frozenset[str]


@dataclass(frozen=True)
class Shape:
    """A table as the store holds it; `live` are the files that it needs."""

    name: str
    blobs: dict[str, Blob]
    live: frozenset[str]
    writers: tuple[Writer, ...]
    uuid: str


def rows(first: int, count: int = 4) -> pa.Table:
    ids = list(range(first, first + count))
    return pa.table({"id": ids, "day": [f"d {number % 2}%é" for number in ids]}, schema=ROWS)


def open_table() -> Table:
    """Return the table as a new connection sees it."""
    return rowlake.connect("s3://lake/wh", catalog="filesystem").table(NAME)


def live_files(table: Table) -> frozenset[str]:
    """Return the paths of all files that a table needs, as PyIceberg reads its metadata."""
    handle, io = table.handle, StorageFileIO({})
    metadata = handle.metadata
    named = {handle.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
    named |= {one.statistics_path for one in metadata.statistics}
    named |= {one.statistics_path for one in metadata.partition_statistics}
    for snapshot in metadata.snapshots:
        named.add(snapshot.manifest_list)
        for key, value in snapshot.summary.additional_properties.items():
            named |= {value} if key.startswith("rowlake.") and key.endswith("-file") else set()
        if snapshot.manifest_list not in _REACHED:
            _REACHED[snapshot.manifest_list] = frozenset(_reached(snapshot.manifests(io), io))
        named |= _REACHED[snapshot.manifest_list]
    paths = {location.partition("://")[2] for location in named}
    return frozenset(paths | {f"{PATH}/metadata/version-hint.text"})


# By manifest list, which never changes: PyIceberg takes its time.
_REACHED: dict[str, frozenset[str]] = {}


def _reached(manifests: list[Any], io: StorageFileIO) -> Iterator[str]:
    for manifest in manifests:
        yield manifest.manifest_path
        for entry in manifest.fetch_manifest_entry(io, discard_deleted=True):
            yield entry.data_file.file_path


def set_statistics(table: Table, store: MemoryStore) -> None:
    """Give the current snapshot a statistics file and one of partitions."""
    snapshot_id = table.handle.metadata.current_snapshot_id
    for number, kind in enumerate(("stats", "parts")):
        path = f"{PATH}/metadata/{snapshot_id}-{kind}-{len(store.blobs)}.puffin"
        store.put(path, b"statistics")
        common = {
            "snapshot-id": snapshot_id,
            "statistics-path": f"s3://{path}",
            "file-size-in-bytes": 10,
        }
        if number == 0:
            more = {"file-footer-size-in-bytes": 4, "blob-metadata": []}
            update: Any = SetStatisticsUpdate(statistics=StatisticsFile(**common, **more))
        else:
            update = SetPartitionStatisticsUpdate(
                partition_statistics=PartitionStatisticsFile(**common)
            )
        commit_metadata(table.handle, "statistics", lambda _, made=update: ((made,), ()))


def _make(shape: str, store: MemoryStore) -> None:
    version = {"v1": "1", "v3": "3"}.get(shape.partition(" ")[0], "2")
    properties = {"format-version": version}
    if "gzip" in shape:
        properties["write.metadata.compression-codec"] = "gzip"
    if "hashed" in shape:
        properties["write.object-storage.enabled"] = "true"
    lake = rowlake.connect("s3://lake/wh", catalog="filesystem")
    lake.create_namespace("db", if_not_exists=True)
    layout = [HIDDEN] if "partitions" in shape else []
    table = lake.create_table(NAME, ROWS, partition_by=layout, properties=properties)
    if "empty" in shape:
        return
    table.append(rows(0))
    table.append(rows(10))
    table.create_tag("first")
    table.create_branch("audit")
    if "s3a" in shape:
        table.set_properties({"write.data.path": f"s3a://{PATH}/data"})
    table.append(rows(20), branch="audit")
    table.append(rows(30), stage_only=True)
    if version != "1":
        table.delete("id = 1", mode="merge-on-read")
    table.delete("id = 2", mode="copy-on-write")
    set_statistics(table, store)


SHAPES = (
    "v2 plain",
    "v3 vectors",
    "v2 partitions",
    "v3 partitions s3a",
    "v1 partitions",
    "v2 gzip hashed",
    "v2 s3a",
    "v2 empty",
)


def _writers(shape: str, store: MemoryStore) -> dict[str, Callable[[Table], Any]]:
    made: dict[str, Callable[[Table], Any]] = {
        "append": lambda table: table.append(rows(100)),
        "tag": lambda table: table.set_properties({"touched": "yes"}),
    }
    if "empty" in shape:
        return made
    made |= {
        "branch": lambda table: table.append(rows(110), branch="audit"),
        "stage": lambda table: table.append(rows(120), stage_only=True),
        "rewrite": lambda table: table.delete("id = 11", mode="copy-on-write"),
        "statistics": lambda table: set_statistics(table, store),
    }
    if not shape.startswith("v1"):
        made["mark"] = lambda table: table.delete("id = 3", mode="merge-on-read")
    return made


def make_shape(shape: str, store: MemoryStore) -> Shape:
    """Make a table, and each of the writers' commits on a copy of it."""
    store.blobs = {}
    _make(shape, store)
    before = dict(store.blobs)
    table = open_table()
    live, uuid = live_files(table), str(table.handle.metadata.table_uuid)
    writers = []
    for name, act in _writers(shape, store).items():
        store.blobs = dict(before)
        act(open_table())
        new = {path: blob for path, blob in store.blobs.items() if before.get(path) != blob}
        pointer = {path: blob for path, blob in new.items() if _is_pointer(path)}
        files = {path: blob for path, blob in new.items() if path not in pointer}
        writers.append(Writer(name, files, pointer, live_files(open_table())))
    return Shape(shape, before, live, tuple(writers), uuid)


def _is_pointer(path: str) -> bool:
    return ".metadata.json" in path or path.endswith("version-hint.text")
