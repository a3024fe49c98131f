"""Which position delete files are rewritten together.

Comes in: a table at a snapshot, a filter and options. Goes out: `DeleteGroup`s. The rules are those
of Iceberg's planner: delete files of a wrong size are packed by partition into groups of bounded
size, and a group is worth its work if it has enough files, enough bytes or too many. Further:

- format version 2, one delete file per data file: a group all of whose files are the only one of
  their data file is left alone, so that a second run rewrites nothing;
- format version 3: a vector hides every position delete file of its data file, so all of a
  partition go together; all partitions, unless options say which. Vectors are left alone.

Only metadata is read. What position delete files say of data files that have a vector, that are
newer or that are gone never applied, and is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.maintain.deletes.position_kernel import MOST_ROWS, NumberedDelete, PositionGroup
from rowlake.maintain.options import GB, JOB_ORDERS, FileSizes, Given
from rowlake.model.distinct import distinct
from rowlake.model.files import Content, are_vectors
from rowlake.model.predicate import TRUE
from rowlake.model.properties import whole_number
from rowlake.model.values import encode_partitions
from rowlake.plan.delete_index import DeleteIndex
from rowlake.plan.delete_overlap import single_paths
from rowlake.plan.files import DELETE_COLUMNS, FILE_COLUMNS
from rowlake.prune.bind import bind
from rowlake.prune.match import deletes_may_match
from rowlake.prune.metrics import one_array
from rowlake.prune.row_ranges import partition_keys
from rowlake.rowlevel.strategy import granularity_of
from rowlake.write.properties import MB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from rowlake.model.format import TaskRunner
    from rowlake.model.predicate import Predicate
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage

    Numbers = NDArray[np.int64]
    Flags = NDArray[np.bool_]

PROCEDURE = "rewrite_position_delete_files"
TARGET_SIZE = "write.delete.target-file-size-bytes"
NEVER = 2**63 - 1
# With any of these the caller says which groups are worth their work.
CHOOSING = frozenset(
    {"target-file-size-bytes", "min-file-size-bytes", "max-file-size-bytes", "min-input-files"}
)
KNOWN = CHOOSING | {
    "max-concurrent-file-group-rewrites",
    "max-file-group-input-files",
    "max-file-group-size-bytes",
    "partial-progress.enabled",
    "partial-progress.max-commits",
    "rewrite-all",
    "rewrite-job-order",
}


@dataclass(frozen=True)
class PositionOptions:
    """How to pick, group and commit; see Iceberg's `rewrite_position_delete_files`.

    How many groups are rewritten at once is the engine's affair; the option is only checked.
    `skips_settled`: files from which nothing can be gained are left, unless a call names sizes or
    counts of its own; then what these select is rewritten, as Iceberg does it.
    """

    sizes: FileSizes
    min_input_files: int
    max_group_bytes: int
    max_group_files: int
    job_order: str
    rewrite_all: bool
    partial_progress: bool
    max_commits: int
    granularity: str
    to_vectors: bool
    skips_settled: bool = True

    @classmethod
    def of(cls, options: Mapping[str, Any] | None, view: TableView) -> PositionOptions:
        """Return the options of a call on a table."""
        given = Given(PROCEDURE, options, KNOWN)
        given.whole("max-concurrent-file-group-rewrites", 5)
        to_vectors = view.can.deletion_vectors
        chooses = any(name in given for name in CHOOSING)
        return cls(
            sizes=FileSizes.of(
                given, whole_number(dict(view.properties), TARGET_SIZE, 64 * MB, least=1)
            ),
            min_input_files=given.whole("min-input-files", 5),
            max_group_bytes=given.whole("max-file-group-size-bytes", 100 * GB),
            max_group_files=given.whole("max-file-group-input-files", NEVER),
            job_order=given.choice("rewrite-job-order", JOB_ORDERS, "none"),
            rewrite_all=given.flag("rewrite-all", default=to_vectors and not chooses),
            partial_progress=given.flag("partial-progress.enabled", default=False),
            max_commits=given.whole("partial-progress.max-commits", 10),
            granularity=granularity_of(view.properties),
            to_vectors=to_vectors,
            skips_settled=not to_vectors and not chooses,
        )


@dataclass(frozen=True)
class DeleteGroup:
    """Position delete files to remove, and what replaces them; each of `parts` by itself."""

    removed: tuple[str, ...]
    size_in_bytes: int
    parts: tuple[PositionGroup, ...]


def plan_position_groups(
    view: TableView,
    where: Predicate | None,
    options: PositionOptions,
    storage: Storage,
    runner: TaskRunner | None = None,
) -> list[DeleteGroup]:
    """Return the groups to rewrite, in the order of the work."""
    predicate = TRUE if where is None else bind(where, view.schema)
    listing = view.format.list_files(view, predicate, storage, runner=runner)
    wanted = {
        spec_id: found
        for spec_id, table in sorted(listing.deletes(DELETE_COLUMNS).items())
        if (found := _Positions.of(table, view, spec_id, predicate)).is_chosen.any()
    }
    data = listing.data(FILE_COLUMNS) if wanted else {}
    groups = [
        group
        for spec_id, found in wanted.items()
        for group in _Spec(view, spec_id, found, data.get(spec_id), options).groups()
    ]
    return _ordered(groups, options.job_order)


def _ordered(groups: list[DeleteGroup], order: str) -> list[DeleteGroup]:
    by, _, direction = order.partition("-")
    if by == "none":
        return groups
    sizes = {"bytes": lambda group: group.size_in_bytes, "files": lambda g: len(g.removed)}
    return sorted(groups, key=sizes[by], reverse=direction == "desc")


@dataclass(frozen=True)
class _Positions:
    """The position deletes and vectors of one spec; `is_chosen`: files that may be rewritten."""

    table: pa.Table
    is_chosen: Flags

    @classmethod
    def of(cls, table: pa.Table, view: TableView, spec_id: int, where: Predicate) -> _Positions:
        by_position = pc.equal(table["content"], int(Content.POSITION_DELETES))
        kept = table.filter(by_position).combine_chunks()
        chosen = pc.invert(are_vectors(kept["file_format"]))
        if where != TRUE and kept.num_rows:
            may = deletes_may_match(kept, where, view.specs[spec_id], view.schema)
            chosen = pc.and_(chosen, may)
        return cls(kept, np.asarray(one_array(chosen)))


class _Spec:
    """The groups of one spec: rows are those of `found.table`."""

    def __init__(
        self,
        view: TableView,
        spec_id: int,
        found: _Positions,
        data: pa.Table | None,
        options: PositionOptions,
    ) -> None:
        self.spec_id, self.options = spec_id, options
        self.table, self.is_chosen = found.table, found.is_chosen
        self.index = DeleteIndex({spec_id: found.table}, view.specs, view.schema)
        self.data = data
        self.sizes = _numbers(found.table, "file_size_in_bytes")
        self.records = _numbers(found.table, "record_count")
        self.sequence_numbers = _numbers(found.table, "data_sequence_number")
        self.data_rows, self.delete_rows = self._pairs()

    def _pairs(self) -> tuple[Numbers, Numbers]:
        """Return which files may apply to which data files, as two arrays of rows."""
        none = np.zeros(0, np.int64)
        found = [(none, none)]
        if self.data is not None:
            for group in self.index.applied_to(self.data, self.spec_id).groups:
                found += list(group.pairs())
        data, deletes = (np.concatenate(side) for side in zip(*found, strict=True))
        mine = self.is_chosen[deletes]
        return data[mine], deletes[mine]

    def groups(self) -> Iterator[DeleteGroup]:
        """Yield the groups that are worth their work."""
        bins = [rows for rows in self._bins() if self._is_worth(rows)]
        number = np.full(self.table.num_rows, -1, np.int64)
        for place, rows in enumerate(bins):
            number[rows] = place
        order = np.argsort(number[self.delete_rows], kind="stable")
        edges = np.searchsorted(number[self.delete_rows][order], np.arange(len(bins) + 1))
        for place, rows in enumerate(bins):
            yield self._group(rows, order[edges[place] : edges[place + 1]])

    # --- which

    def _bins(self) -> list[Numbers]:
        """Return the rows of each group: of one partition, in order, of bounded size."""
        partitions = one_array(self.table.column("partition"))
        keys, _ = partition_keys(partitions, partitions.slice(0, 0))
        wanted = self.is_chosen
        if not self.options.to_vectors and not self.options.rewrite_all:
            wanted = wanted & self.options.sizes.outside(self.sizes)
        rows = np.flatnonzero(wanted)
        rows = rows[np.argsort(keys[rows], kind="stable")]
        edges = np.flatnonzero(np.diff(keys[rows])) + 1
        by_partition = [part for part in np.split(rows, edges) if len(part)]
        if self.options.to_vectors:
            return by_partition
        return [some for part in by_partition for some in self._packed(part)]

    def _packed(self, rows: Numbers) -> list[Numbers]:
        groups: list[list[int]] = [[]]
        size = 0
        for row in rows.tolist():
            is_full = size + int(self.sizes[row]) > self.options.max_group_bytes
            if groups[-1] and (is_full or len(groups[-1]) >= self.options.max_group_files):
                groups.append([])
                size = 0
            groups[-1].append(row)
            size += int(self.sizes[row])
        return [np.array(group, np.int64) for group in groups]

    def _is_worth(self, rows: Numbers) -> bool:
        options = self.options
        if options.rewrite_all:
            return True
        by_file = options.granularity == "file"
        if options.skips_settled and by_file and self._settled[rows].all():
            return False
        judged = rows[options.sizes.outside(self.sizes[rows])]
        total, count = int(self.sizes[judged].sum()), len(judged)
        enough = count > 1 and (count >= options.min_input_files or total > options.sizes.target)
        return enough or total > options.sizes.most

    @cached_property
    def _settled(self) -> Flags:
        """The files that are about one data file, and the only one of it: nothing to gain."""
        settled = np.zeros(self.table.num_rows, np.bool_)
        if not len(self.data_rows):
            return settled
        named = one_array(self.table.column("referenced_data_file"))
        single = np.asarray(pc.is_valid(pc.coalesce(named, single_paths(self.table))))
        alone = np.bincount(self.data_rows)[self.data_rows] == 1
        settled[self.delete_rows[alone]] = True
        return np.asarray(settled & single)

    # --- made of what

    def _group(self, rows: Numbers, pairs: Numbers) -> DeleteGroup:
        some = self.table.take(pa.array(rows))
        size = int(self.sizes[rows].sum())
        partition = encode_partitions(one_array(some.column("partition")).slice(0, 1))
        files = self.options.sizes.output_files(size)
        template = PositionGroup(
            spec_id=self.spec_id,
            partition=tuple(partition.to_pylist()[0]),
            data={},
            deletes=(),
            data_sequence_number=int(self.sequence_numbers[rows].max()),
            rows_per_file=max(1, -(-int(self.records[rows].sum()) // files)),
        )
        return DeleteGroup(
            removed=tuple(some["location"].to_pylist()),
            size_in_bytes=size,
            parts=tuple(self._parts(template, pairs)),
        )

    def _parts(self, template: PositionGroup, pairs: Numbers) -> Iterator[PositionGroup]:
        """Yield the parts of a group: a group with too many positions is cut by data files."""
        if self.data is None or not len(pairs):
            return
        data, deletes = self.data_rows[pairs], self.delete_rows[pairs]
        rows = int(self.records[distinct(deletes)].sum())
        count = -(-rows // MOST_ROWS)
        # Counts are what manifests say: there are never more parts than data files.
        for files in np.array_split(distinct(data), min(max(1, count), len(distinct(data)))):
            named = self.data.take(pa.array(files))
            numbers = _numbers(named, "data_sequence_number").tolist()
            read = distinct(deletes[np.isin(data, files)])
            yield PositionGroup(
                template.spec_id,
                template.partition,
                dict(zip(named["location"].to_pylist(), numbers, strict=True)),
                self._numbered(read),
                template.data_sequence_number,
                template.rows_per_file,
            )

    def _numbered(self, rows: Numbers) -> tuple[NumberedDelete, ...]:
        numbers = self.sequence_numbers[rows].tolist()
        found = self.index.delete_files(rows.tolist())
        return tuple(map(NumberedDelete, found, numbers))


def _numbers(table: pa.Table, name: str) -> Numbers:
    return np.asarray(one_array(table.column(name)).fill_null(0)).astype(np.int64, copy=False)
