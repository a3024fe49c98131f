"""Which data files a compaction rewrites, and in which groups.

Comes in: a table at a snapshot, a filter and options. Goes out: `FileGroup`s. The rules are those
of Iceberg's planner: a file is picked for its size, or for its deletes; the files of a partition,
and those of all specs but the one that is written (`file_groups`), are packed into groups of
bounded size; a group is worth its work if it has enough files, enough bytes, a file that is too
large, or deletes to fold in. Picking is columnar: only picked files become objects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.maintain.compact.file_groups import group_keys
from rowlake.maintain.options import GB, JOB_ORDERS, FileSizes, Given
from rowlake.model.files import Content
from rowlake.model.predicate import TRUE
from rowlake.model.properties import whole_number
from rowlake.model.values import encode_partitions
from rowlake.plan.files import plan_files
from rowlake.plan.record_counts import with_record_counts
from rowlake.plan.tasks import whole_files
from rowlake.prune.metrics import one_array
from rowlake.write.properties import MB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from rowlake.model.format import TaskRunner
    from rowlake.model.predicate import Predicate
    from rowlake.model.rewrite import Partition
    from rowlake.model.task import FileTask
    from rowlake.model.view import TableView
    from rowlake.plan.delete_index import Applied
    from rowlake.plan.files import FilePlan
    from rowlake.storage.files import Storage

    Numbers = NDArray[np.int64]

PROCEDURE = "rewrite_data_files"
NEVER = 2**31 - 1
KNOWN = frozenset(
    {
        "target-file-size-bytes",
        "min-file-size-bytes",
        "max-file-size-bytes",
        "min-input-files",
        "delete-file-threshold",
        "delete-ratio-threshold",
        "max-file-group-size-bytes",
        "max-concurrent-file-group-rewrites",
        "partial-progress.enabled",
        "partial-progress.max-commits",
        "partial-progress.max-failed-commits",
        "rewrite-job-order",
        "rewrite-all",
        "use-starting-sequence-number",
        "remove-dangling-deletes",
        "output-spec-id",
        "max-files-to-rewrite",
        "shuffle-partitions-per-file",
        "compression-factor",
        "var-length-contribution",
        "max-output-size",
    }
)


@dataclass(frozen=True)
class RewriteOptions:
    """How to pick, group and commit; see Iceberg's `rewrite_data_files`.

    With an `order_id`, files that are not written in that order are picked too.
    """

    sizes: FileSizes
    min_input_files: int
    delete_file_threshold: int
    delete_ratio_threshold: float
    max_group_bytes: int
    concurrent_groups: int
    partial_progress: bool
    max_commits: int
    max_failed_commits: int
    job_order: str
    rewrite_all: bool
    use_starting_sequence_number: bool
    remove_dangling_deletes: bool
    output_spec_id: int
    max_files: int | None
    ranges_per_file: int = 1
    order_id: int = 0

    @classmethod
    def of(cls, options: Mapping[str, Any] | None, view: TableView) -> RewriteOptions:
        """Return the options of a call on a table."""
        given = Given(PROCEDURE, options, KNOWN)
        target = whole_number(
            dict(view.properties), "write.target-file-size-bytes", 512 * MB, least=1
        )
        max_commits = given.whole("partial-progress.max-commits", 10)
        return cls(
            sizes=FileSizes.of(given, target),
            min_input_files=given.whole("min-input-files", 5),
            delete_file_threshold=given.whole("delete-file-threshold", NEVER, least=0),
            delete_ratio_threshold=given.fraction("delete-ratio-threshold", 0.3),
            max_group_bytes=given.whole("max-file-group-size-bytes", 100 * GB),
            concurrent_groups=given.whole("max-concurrent-file-group-rewrites", 5),
            partial_progress=given.flag("partial-progress.enabled", default=False),
            max_commits=max_commits,
            max_failed_commits=given.whole(
                "partial-progress.max-failed-commits", max_commits, least=0
            ),
            job_order=given.choice("rewrite-job-order", JOB_ORDERS, "none"),
            rewrite_all=given.flag("rewrite-all", default=False),
            use_starting_sequence_number=given.flag("use-starting-sequence-number", default=True),
            remove_dangling_deletes=given.flag("remove-dangling-deletes", default=False),
            output_spec_id=given.whole("output-spec-id", view.default_spec_id, least=0),
            max_files=given.whole("max-files-to-rewrite", NEVER)
            if "max-files-to-rewrite" in given
            else None,
            ranges_per_file=_ordering(given),
        )


def _ordering(given: Given) -> int:
    """Check the options of sorting; return into how many ranges the rows of a file are split.

    The others say what sizes Spark's shuffles and Iceberg's Z-values have; there are none here.
    """
    given.positive("compression-factor", 1.0)
    given.whole("var-length-contribution", 8)
    given.whole("max-output-size", NEVER)
    return given.whole("shuffle-partitions-per-file", 1)


@dataclass(frozen=True)
class FileGroup:
    """Data files of one partition, or of older specs, that are rewritten together.

    `partitions` are encoded, one for each file; `live_bytes` is what of the files is not deleted.
    """

    files: tuple[FileTask, ...]
    partitions: tuple[Partition, ...]
    live_bytes: float

    @property
    def size_in_bytes(self) -> int:
        """The bytes that are read."""
        return sum(file.file_size_in_bytes for file in self.files)

    @property
    def live_share(self) -> float:
        """The share of it that is not deleted."""
        return self.live_bytes / max(self.size_in_bytes, 1)

    def of(self, locations: frozenset[str]) -> FileGroup:
        """Return the group with some of its files alone."""
        kept = [place for place, file in enumerate(self.files) if file.location in locations]
        return FileGroup(
            tuple(self.files[place] for place in kept),
            tuple(self.partitions[place] for place in kept),
            self.live_bytes * len(kept) / max(len(self.files), 1),
        )


@dataclass(frozen=True)
class Planned:
    """The groups to rewrite, and how many files the filter left (`considered`)."""

    groups: list[FileGroup]
    considered: int


@dataclass(frozen=True)
class _Picked:
    """Files that are candidates: of which spec, which row of its table, and what is known."""

    spec_ids: Numbers
    rows: Numbers
    sizes: Numbers
    deleted: Numbers
    records: Numbers
    is_due: NDArray[np.bool_]
    keys: Numbers

    @property
    def live_bytes(self) -> NDArray[np.float64]:
        """The share of the bytes that is not deleted."""
        left = np.maximum(self.records - self.deleted, 0) / np.maximum(self.records, 1)
        return np.asarray(self.sizes * left)


def plan_groups(
    view: TableView,
    where: Predicate | None,
    options: RewriteOptions,
    storage: Storage,
    runner: TaskRunner | None = None,
) -> Planned:
    """Return the groups to rewrite, in the order of the work."""
    plan = plan_files(view, where, storage, whole_files=True, runner=runner)
    plan = with_record_counts(plan, storage)
    unordered = _unordered(view, options.order_id, storage)
    found = [_picked(plan, spec_id, options, unordered) for spec_id in sorted(plan.data)]
    groups = _groups(plan, _joined(found), options) if found else []
    return Planned(_ordered(groups, options), plan.file_count)


def _unordered(view: TableView, order_id: int, storage: Storage) -> pa.Array:
    """Return the locations of the files that are not written in an order; none without one."""
    if not order_id:
        return pa.array([], pa.string())
    listed = view.format.list_files(view, TRUE, storage).data(["location", "sort_order_id"])
    orders = pa.concat_tables(listed.values())
    same = pc.fill_null(pc.equal(orders["sort_order_id"], order_id), False)
    return one_array(orders.filter(pc.invert(same))["location"])


def _picked(plan: FilePlan, spec_id: int, options: RewriteOptions, unordered: pa.Array) -> _Picked:
    table = plan.data[spec_id]
    sizes = np.asarray(one_array(table.column("file_size_in_bytes")))
    records = np.asarray(one_array(table.column("record_count")))
    applied = plan.applied[spec_id]
    deleted = _deleted_rows(plan, applied, records)
    many = applied.counts >= options.delete_file_threshold
    many |= (deleted > 0) & (deleted >= options.delete_ratio_threshold * records)
    if len(unordered):
        many |= np.asarray(pc.is_in(one_array(table.column("location")), unordered))
    wanted = options.sizes.outside(sizes) | many | options.rewrite_all
    rows = np.flatnonzero(wanted)
    keys = group_keys(table, is_written=spec_id == options.output_spec_id)
    return _Picked(
        np.full(len(rows), spec_id),
        rows,
        sizes[rows],
        deleted[rows],
        records[rows],
        many[rows],
        keys[rows],
    )


def _joined(parts: Sequence[_Picked]) -> _Picked:
    names = _Picked.__dataclass_fields__
    return _Picked(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _deleted_rows(plan: FilePlan, applied: Applied, records: Numbers) -> Numbers:
    """Return how many rows of each file are known to be deleted: by deletes of that file alone."""
    deleted = np.zeros(len(records), np.int64)
    for row in np.flatnonzero(applied.counts).tolist():
        deletes = plan.deletes.delete_files(applied.rows_of(row))
        deleted[row] = sum(
            delete.record_count
            for delete in deletes
            if delete.content is Content.POSITION_DELETES
            and (delete.is_vector or delete.referenced_data_file is not None)
        )
    return np.minimum(deleted, records)


def _packed(picked: _Picked, options: RewriteOptions) -> list[Numbers]:
    """Return sets of places in `picked`: of one key each, in order, of bounded size."""
    order = np.argsort(picked.keys, kind="stable")
    groups: list[Numbers] = []
    current: list[int] = []
    size, key = 0, None
    for place in order.tolist():
        is_full = size + int(picked.sizes[place]) > options.max_group_bytes
        if current and (picked.keys[place] != key or is_full):
            groups.append(np.array(current))
            current, size = [], 0
        current.append(place)
        size += int(picked.sizes[place])
        key = picked.keys[place]
    if current:
        groups.append(np.array(current))
    return groups


def _is_worth(picked: _Picked, places: Numbers, options: RewriteOptions) -> bool:
    if options.rewrite_all or picked.is_due[places].any():
        return True
    total, count = int(picked.sizes[places].sum()), len(places)
    enough = count > 1 and (count >= options.min_input_files or total > options.sizes.target)
    return enough or total > options.sizes.most


def _groups(plan: FilePlan, picked: _Picked, options: RewriteOptions) -> list[FileGroup]:
    kept = [places for places in _packed(picked, options) if _is_worth(picked, places, options)]
    files: dict[int, tuple[FileTask, Partition]] = {}
    if kept:
        files = _files_at(plan, picked, np.concatenate(kept))
    groups = []
    for places in kept:
        held, partitions = zip(*(files[place] for place in places.tolist()), strict=True)
        groups.append(FileGroup(held, partitions, float(picked.live_bytes[places].sum())))
    return groups


def _files_at(
    plan: FilePlan, picked: _Picked, places: Numbers
) -> dict[int, tuple[FileTask, Partition]]:
    """Return files, each with its encoded partition, by their places."""
    found: dict[int, tuple[FileTask, Partition]] = {}
    for spec_id in np.unique(picked.spec_ids[places]).tolist():
        of_spec = places[picked.spec_ids[places] == spec_id]
        table = plan.data[spec_id].take(pa.array(picked.rows[of_spec]))
        files = whole_files(replace(plan, data={spec_id: table}), spec_id)
        encoded = encode_partitions(one_array(table.column("partition"))).to_pylist()
        found.update(
            zip(of_spec.tolist(), zip(files, map(tuple, encoded), strict=True), strict=True)
        )
    return found


def _ordered(groups: list[FileGroup], options: RewriteOptions) -> list[FileGroup]:
    by, _, direction = options.job_order.partition("-")
    if by != "none":
        weight = _bytes_of if by == "bytes" else _files_in
        groups = sorted(groups, key=weight, reverse=direction == "desc")
    if options.max_files is None:
        return groups
    return _up_to(groups, options.max_files)


def _bytes_of(group: FileGroup) -> int:
    return group.size_in_bytes


def _files_in(group: FileGroup) -> int:
    return len(group.files)


def _up_to(groups: Sequence[FileGroup], most: int) -> list[FileGroup]:
    """Return the first groups that together hold at most this many files."""
    kept: list[FileGroup] = []
    for group in groups:
        if len(group.files) > most:
            break
        most -= len(group.files)
        kept.append(group)
    return kept


def within_bytes(groups: Sequence[FileGroup], most: int | None) -> list[FileGroup]:
    """Return the first groups that are read within a budget; always one, so that work goes on."""
    if most is None:
        return list(groups)
    kept: list[FileGroup] = []
    for group in groups:
        most -= group.size_in_bytes
        if kept and most < 0:
            break
        kept.append(group)
    return kept
