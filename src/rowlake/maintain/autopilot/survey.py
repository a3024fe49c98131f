"""Survey of a table's metadata: sizes, rows, partitions, and what deletes apply where.

Comes in: a table's head. Goes out: a `Survey`, numbers per data file and per delete file as arrays.
Health and optimize decide by it. No data file is opened, and there is no object per file.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import StorageError
from rowlake.maintain.compact.file_groups import group_keys
from rowlake.model.files import Content, are_vectors
from rowlake.model.predicate import TRUE
from rowlake.model.transform import partition_path
from rowlake.model.values import encode_partitions
from rowlake.plan.delete_overlap import single_paths
from rowlake.plan.files import plan_files
from rowlake.prune.metrics import one_array
from rowlake.prune.row_ranges import partition_keys

if TYPE_CHECKING:
    from rowlake.model.handle import TableHandle
    from rowlake.model.health import MetadataFacts
    from rowlake.model.predicate import Predicate
    from rowlake.model.view import TableView
    from rowlake.plan.delete_index import Applied
    from rowlake.plan.files import FilePlan
    from rowlake.prune.row_ranges import Ranges

    Numbers = np.ndarray[Any, Any]

BOUNDS_COLUMNS = ("lower_bounds", "upper_bounds")
VECTOR, POSITION, EQUALITY = 0, 1, 2


@dataclass(frozen=True)
class DeleteFacts:
    """Delete files, and what they do to data files.

    Per delete file: `kinds` (VECTOR, POSITION, EQUALITY), `sizes`, `rows`, `reach` (the number of
    data files that it applies to; 0: it is dangling). Per data file: how many delete files must be
    opened to read it (`positions`: vectors too; `equalities`) and their bytes, and `deleted`, how
    many of its rows positions and vectors delete. Where a delete file covers several data files its
    rows are shared out evenly, since only the file itself knows better; `surely_deleted` has the
    rows of deletes that name one data file.
    """

    kinds: Numbers
    sizes: Numbers
    rows: Numbers
    reach: Numbers
    positions: Numbers
    equalities: Numbers
    bytes_opened: Numbers
    deleted: Numbers
    surely_deleted: Numbers

    @property
    def count(self) -> int:
        """How many delete files there are; every vector counts as one."""
        return len(self.kinds)

    def of(self, *kinds: int) -> Numbers:
        """Return True for each delete file of these kinds."""
        return np.isin(self.kinds, kinds)

    @property
    def dangling(self) -> Numbers:
        """True for each delete file that applies to no data file."""
        return np.asarray(self.reach == 0)


@dataclass(frozen=True)
class Survey:
    """What metadata says of a table; arrays have one entry per data file, specs in plan order."""

    handle: TableHandle
    view: TableView
    plan: FilePlan
    manifests: pa.Table
    now_ms: int = field(default_factory=lambda: int(time.time() * 1000))

    @property
    def name(self) -> str:
        """The table's name."""
        return self.view.name

    @property
    def count(self) -> int:
        """How many data files there are."""
        return self.plan.file_count

    @cached_property
    def sizes(self) -> Numbers:
        """The size of each data file, in bytes."""
        return self._column("file_size_in_bytes")

    @cached_property
    def rows(self) -> Numbers:
        """The rows of each data file, deleted ones too."""
        return self._column("record_count")

    def _column(self, name: str) -> Numbers:
        parts = [np.asarray(one_array(table.column(name))) for table in self.plan.data.values()]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts]).astype(np.int64)

    @cached_property
    def partitions(self) -> Numbers:
        """The number of each data file's partition; files of two specs are never in one."""
        found, first = [np.zeros(0, dtype=np.int64)], 0
        for table in self.plan.data.values():
            partition = one_array(table.column("partition"))
            keys, _ = partition_keys(partition, partition.slice(0, 0))
            distinct, numbers = np.unique(keys, return_inverse=True)
            found.append(numbers + first)
            first += len(distinct)
        return np.concatenate(found)

    @cached_property
    def groups(self) -> Numbers:
        """The number of each data file's group: files that a compaction may bring together."""
        keys = [
            group_keys(table, is_written=spec_id == self.view.default_spec_id)
            for spec_id, table in self.plan.data.items()
        ]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *keys]), return_inverse=True)[1]

    @property
    def of_current_spec(self) -> Numbers:
        """True for each data file of the spec that new files are written with."""
        sizes = [table.num_rows for table in self.plan.data.values()]
        current = [spec_id == self.view.default_spec_id for spec_id in self.plan.data]
        return np.repeat(np.array(current, dtype=bool), sizes)

    @cached_property
    def partition_count(self) -> int:
        """How many partitions have files."""
        return int(self.partitions.max()) + 1 if self.count else 0

    def partition_name(self, number: int) -> str:
        """Return a partition as people read it: `day=2024-01-01`."""
        place = int(np.flatnonzero(self.partitions == number)[0])
        for spec_id, table in self.plan.data.items():
            if place < table.num_rows:
                partition = one_array(table.column("partition").slice(place, 1))
                encoded = tuple(encode_partitions(partition)[0].as_py())
                return partition_path(self.view.specs[spec_id], self.view.schema, encoded)
            place -= table.num_rows
        return ""

    @cached_property
    def manifest_numbers(self) -> Numbers | None:
        """The number of each data file's manifest; None where manifests do not count files."""
        found, first = [np.zeros(0, dtype=np.int64)], 0
        for spec_id, table in self.plan.data.items():
            mine = self.manifests.filter(
                pc.and_(
                    pc.equal(self.manifests["partition_spec_id"], spec_id),
                    pc.equal(self.manifests["content"], 0),
                )
            )
            live = pc.add(mine["added_files_count"], mine["existing_files_count"])
            if live.null_count or (pc.sum(live).as_py() or 0) != table.num_rows:
                return None
            found.append(np.repeat(np.arange(mine.num_rows) + first, np.asarray(one_array(live))))
            first += mine.num_rows
        return np.concatenate(found)

    @cached_property
    def deletes(self) -> DeleteFacts:
        """What deletes apply where."""
        return _delete_facts(self.plan)

    @cached_property
    def metadata_facts(self) -> MetadataFacts:
        """What the metadata says of its own files."""
        return self.handle.format.metadata_facts(self.handle)

    @cached_property
    def metadata_size(self) -> int | None:
        """The size of the metadata file in bytes; None where it cannot be seen.

        A table that is staged has none, and a catalog server may keep it to itself.
        """
        location = self.metadata_facts.location
        if location is None:
            return None
        try:
            with self.handle.storage.open_input(location) as stream:
                return int(stream.size())
        except StorageError:
            return None


def survey(handle: TableHandle, *, branch: str = "main", where: Predicate | None = None) -> Survey:
    """Look at the head of a branch; `where` leaves out files that have no row of it."""
    view = handle.view(ref=branch)
    storage = handle.storage
    plan = plan_files(view, where, storage, columns=BOUNDS_COLUMNS, whole_files=True)
    listing = view.format.list_files(view, TRUE, storage)
    return Survey(handle, view, plan, listing.units)


def _delete_facts(plan: FilePlan) -> DeleteFacts:
    files = plan.deletes.files
    if plan.deletes.is_empty:
        none, clean = np.zeros(0, dtype=np.int64), np.zeros(plan.file_count, dtype=np.int64)
        return DeleteFacts(none, none, none, none, *([clean] * 5))
    kinds = _kinds(files)
    sizes = pc.coalesce(files["content_size_in_bytes"], files["file_size_in_bytes"])
    size, rows = np.asarray(one_array(sizes)), np.asarray(one_array(files["record_count"]))
    applied = list(plan.applied.values())
    reach = np.zeros(files.num_rows, dtype=np.int64)
    for group in (group for each in applied for group in each.groups):
        np.add.at(reach, group.members, _times_covered(group))
    if plan.predicate != TRUE:
        reach = np.maximum(reach, 1)  # what a filter left out may have data files elsewhere
    by_position = kinds != EQUALITY
    share = np.where(by_position, rows / np.maximum(reach, 1), 0.0)
    return DeleteFacts(
        kinds=kinds,
        sizes=size,
        rows=rows,
        reach=reach,
        positions=_per_file(applied, by_position.astype(np.int64)),
        equalities=_per_file(applied, (~by_position).astype(np.int64)),
        bytes_opened=_per_file(applied, size),
        deleted=_per_file(applied, share),
        surely_deleted=_per_file(applied, np.where(_names_one_file(files), share, 0.0)),
    )


def _kinds(files: pa.Table) -> Numbers:
    content = np.asarray(one_array(files["content"]))
    puffin = np.asarray(one_array(are_vectors(files["file_format"])))
    positions = np.where(puffin, VECTOR, POSITION)
    return np.where(content == Content.EQUALITY_DELETES, EQUALITY, positions)


def _names_one_file(files: pa.Table) -> Numbers:
    named = pc.coalesce(one_array(files["referenced_data_file"]), single_paths(files))
    return np.asarray(named.is_valid())


def _times_covered(group: Ranges) -> Numbers:
    """Return how many data files each member applies to."""
    depth = np.zeros(len(group.members) + 1, dtype=np.int64)
    held = group.ends > group.starts
    np.add.at(depth, group.starts[held], 1)
    np.add.at(depth, group.ends[held], -1)
    return np.cumsum(depth)[:-1]


def _per_file(applied: list[Applied], values: Numbers) -> Numbers:
    """Return, per data file, the sum of the values of the deletes that apply to it."""
    parts = []
    for each in applied:
        total = np.zeros(each.size, dtype=values.dtype)
        for group in each.groups:
            sums = np.concatenate([[0], np.cumsum(values[group.members])])
            total = total + sums[group.ends] - sums[group.starts]
        parts.append(total)
    return np.concatenate([np.zeros(0, dtype=values.dtype), *parts])
