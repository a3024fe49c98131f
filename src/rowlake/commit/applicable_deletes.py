"""Which delete files apply to some data files, told by delete manifests alone.

Comes in: entries of delete files by spec (`files_schema`), and the places of data files. Goes out:
delete files by data file. Sequence numbers are not compared: the data files were there before any
of the deletes asked for. A delete file that names no single data file counts for every data file
of its partition; what it holds must be read.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.files import Content
from rowlake.model.predicate import TRUE
from rowlake.model.values import encode_partitions
from rowlake.plan.delete_index import FACTS, delete_file
from rowlake.plan.delete_overlap import single_paths

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rowlake.model.files import DeleteFile
    from rowlake.model.partition import PartitionSpec
    from rowlake.model.view import SnapshotInfo, TableView
    from rowlake.storage.files import Storage

    Partition = tuple["bytes | None", ...]


@dataclass(frozen=True)
class Place:
    """Where a data file belongs; `partition` is encoded."""

    spec_id: int
    partition: Partition


@dataclass(frozen=True)
class Applying:
    """A delete file that may apply to a data file; `is_single`: to no other one."""

    delete: DeleteFile
    is_single: bool

    @property
    def is_equality(self) -> bool:
        """True for an equality delete file."""
        return self.delete.content is Content.EQUALITY_DELETES


def live_deletes(
    snapshot: SnapshotInfo,
    view: TableView,
    storage: Storage,
    *,
    added_by: Collection[int] | None = None,
    columns: Iterable[str] | None = None,
) -> dict[int, pa.Table]:
    """Return the live delete files of a snapshot by spec; only those that some snapshots added."""
    listed = view.format.list_files(view.at(snapshot), TRUE, storage)
    return listed.deletes(columns, added_by=added_by)


def added_by(entries: Mapping[int, pa.Table], snapshots: Collection[int]) -> dict[int, pa.Table]:
    """Return the entries that these snapshots added."""
    return {
        spec_id: table.filter(_among(table["snapshot_id"], snapshots))
        for spec_id, table in entries.items()
    }


def keys_among(
    entries: Mapping[int, pa.Table], keys: Collection[tuple[str, int | None]]
) -> set[tuple[str, int | None]]:
    """Return which of these keys of delete files are there."""
    locations = pa.array(sorted({location for location, _ in keys}), pa.string())
    found: set[tuple[str, int | None]] = set()
    for table in entries.values():
        some = table.filter(pc.is_in(table["location"], locations))
        columns = (some["location"].to_pylist(), some["content_offset"].to_pylist())
        found |= set(zip(*columns, strict=True))
    return found & set(keys)


def deletes_for(
    files: Mapping[str, Place],
    entries: Mapping[int, pa.Table],
    specs: Mapping[int, PartitionSpec],
) -> dict[str, list[Applying]]:
    """Return the delete files that may apply to each of the data files; none: not there."""
    found: dict[str, list[Applying]] = defaultdict(list)
    locations = pa.array(sorted(files), pa.string())
    for spec_id, table in entries.items():
        paths = pc.coalesce(table["referenced_data_file"], single_paths(table))
        named = pc.is_in(paths, locations)
        for path, delete in zip(
            paths.filter(named).to_pylist(), _delete_files(table.filter(named)), strict=True
        ):
            found[path].append(Applying(delete, is_single=True))
        loose = table.filter(pc.is_null(paths))
        for path, delete in _by_partition(files, loose, specs[spec_id]):
            found[path].append(Applying(delete, is_single=False))
    return dict(found)


def _by_partition(
    files: Mapping[str, Place], loose: pa.Table, spec: PartitionSpec
) -> list[tuple[str, DeleteFile]]:
    by_place: dict[Place, list[str]] = defaultdict(list)
    for path, place in files.items():
        by_place[place].append(path)
    partitions = encode_partitions(loose["partition"].combine_chunks()).to_pylist()
    places = [Place(spec.spec_id, tuple(partition)) for partition in partitions]
    everywhere = [
        spec.is_unpartitioned and content == int(Content.EQUALITY_DELETES)
        for content in loose["content"].to_pylist()
    ]
    rows = [row for row, place in enumerate(places) if everywhere[row] or place in by_place]
    deletes = _delete_files(loose.take(pa.array(rows, pa.int64())))
    return [
        (path, delete)
        for row, delete in zip(rows, deletes, strict=True)
        for path in (files if everywhere[row] else by_place[places[row]])
    ]


def _delete_files(entries: pa.Table) -> list[DeleteFile]:
    return [delete_file(facts) for facts in entries.select(FACTS).to_pylist()]


def _among(column: pa.ChunkedArray, snapshots: Collection[int]) -> pa.ChunkedArray:
    return pc.is_in(column, pa.array(sorted(snapshots), pa.int64()))
