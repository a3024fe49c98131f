"""Which data files a read must open, and which deletes apply to them.

Comes in: a table at a snapshot and a predicate. Goes out: a `FilePlan`. Planning has two phases
(paper §3.2.5): first the delete files that can matter become an index, then data files are pruned
and matched with it. Manifests are pruned before they are read, and only the columns that are needed
are decoded. No Python object is made per file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import UnsupportedFeatureError
from rowlake.iceberg.manifest_list import has_live_files, read_manifest_list
from rowlake.iceberg.manifest_reader import read_manifests
from rowlake.model.files import MANIFESTS
from rowlake.model.predicate import FALSE, TRUE, Leaf, Predicate, leaves
from rowlake.plan.bind import bind
from rowlake.plan.delete_index import Applied, DeleteIndex
from rowlake.plan.prune import manifests_may_match, matching_deletes, matching_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy as np

    from rowlake.model.partition import PartitionSpec
    from rowlake.model.schema import Schema
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage

    Prune = Callable[[pa.Table, Predicate, PartitionSpec, Schema], pa.Table]

DATA, DELETES = 0, 1
FILE_COLUMNS = (
    "data_sequence_number",
    "content",
    "location",
    "file_format",
    "spec_id",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "split_offsets",
    "first_row_id",
)
METRICS_COLUMNS = ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
NAN_COLUMN = "nan_value_counts"
DELETE_COLUMNS = (
    *FILE_COLUMNS,
    *METRICS_COLUMNS,
    NAN_COLUMN,
    "equality_ids",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)


class ReadManifests(Protocol):
    """Reads manifests: in driver threads, or in tasks of an engine."""

    def __call__(
        self,
        manifests: pa.Table,
        view: TableView,
        storage: Storage,
        *,
        columns: Iterable[str] | None = None,
    ) -> dict[int, pa.Table]:
        """Return live entries by spec id."""


@dataclass(frozen=True)
class FilePlan:
    """The files of a read: `data` by spec, `deletes` as an index, counts of what was considered.

    `predicate` is bound. `data` has `FILE_COLUMNS`, and the metrics that pruning needed.
    """

    view: TableView
    predicate: Predicate
    data: Mapping[int, pa.Table]
    deletes: DeleteIndex
    manifests_considered: int = 0
    manifests_pruned: int = 0
    files_considered: int = 0

    @property
    def file_count(self) -> int:
        """How many data files must be read."""
        return sum(table.num_rows for table in self.data.values())

    @property
    def files_pruned(self) -> int:
        """How many data files need not be read."""
        return self.files_considered - self.file_count

    @property
    def size_in_bytes(self) -> int:
        """The sizes of the data files, added up."""
        return self._total("file_size_in_bytes")

    @property
    def record_count(self) -> int:
        """The rows of the data files, deleted ones included."""
        return self._total("record_count")

    @cached_property
    def applied(self) -> dict[int, Applied]:
        """The deletes of the data files, by spec; rows as in `data`."""
        return {
            spec_id: self.deletes.applied_to(table, spec_id) for spec_id, table in self.data.items()
        }

    def clean(self, spec_id: int) -> np.ndarray[Any, Any]:
        """Return True for each data file of a spec to which no delete applies."""
        return self.applied[spec_id].clean

    @property
    def is_clean(self) -> bool:
        """True where no delete applies to any of the data files."""
        return self.deletes.is_empty or all(each.clean.all() for each in self.applied.values())

    def _total(self, name: str) -> int:
        return sum(pc.sum(table.column(name)).as_py() or 0 for table in self.data.values())


def plan_files(
    view: TableView,
    predicate: Predicate | None,
    storage: Storage,
    *,
    columns: Iterable[str] = (),
    whole_files: bool = False,
    read: ReadManifests = read_manifests,
) -> FilePlan:
    """Plan the read of a table: the data files that may hold a row of the predicate.

    Deletes that cannot touch a matching row are left out, so rows that do not match may come back
    to life: a caller that keeps such rows (a rewrite of the files) sets `whole_files`. `columns`
    are further columns of `files_schema` wanted in `data`; `read` reads manifests. Raises
    `InvalidStatementError` for a predicate that does not fit the schema.
    """
    bound = TRUE if predicate is None else bind(predicate, view.schema)
    manifests = live_manifests(view, storage)
    kept = manifests.filter(manifests_may_match(manifests, bound, view.specs, view.schema))
    if bound == FALSE:
        kept = kept.slice(0, 0)
    deletes = _pruned(
        read(_of(kept, DELETES), view, storage, columns=DELETE_COLUMNS),
        view,
        TRUE if whole_files else bound,
        matching_deletes,
    )
    index = DeleteIndex(deletes, view.specs, view.schema)
    wanted = {*FILE_COLUMNS, *columns, *_metrics_columns(bound, index, view)}
    found = read(_of(kept, DATA), view, storage, columns=wanted)
    return FilePlan(
        view=view,
        predicate=bound,
        data=_pruned(found, view, bound, matching_files),
        deletes=index,
        manifests_considered=manifests.num_rows,
        manifests_pruned=manifests.num_rows - kept.num_rows,
        files_considered=_files_listed(_of(manifests, DATA), found),
    )


def live_manifests(view: TableView, storage: Storage) -> pa.Table:
    """Return the manifests (`MANIFESTS`) that list any live file of the snapshot."""
    if view.snapshot is None:
        return MANIFESTS.empty_table()
    if view.snapshot.manifest_list is None:
        raise UnsupportedFeatureError(
            f"Snapshot {view.snapshot_id} of {view.name} has no manifest list (format version 1 "
            f"allowed that). Rewrite the table's manifests with another engine, then read again."
        )
    manifests = read_manifest_list(view.snapshot.manifest_list, storage)
    return manifests.filter(has_live_files(manifests))


def _of(manifests: pa.Table, content: int) -> pa.Table:
    return manifests.filter(pc.equal(manifests["content"], content))


def _pruned(
    tables: dict[int, pa.Table], view: TableView, predicate: Predicate, prune: Prune
) -> dict[int, pa.Table]:
    """Return the files of each spec that may match; specs without any are left out."""
    if predicate == TRUE:
        return {spec_id: table for spec_id, table in tables.items() if table.num_rows}
    found = {}
    for spec_id, table in tables.items():
        kept = prune(table, predicate, view.specs[spec_id], view.schema)
        if kept.num_rows:
            found[spec_id] = kept
    return found


def _metrics_columns(predicate: Predicate, index: DeleteIndex, view: TableView) -> list[str]:
    """Return the metrics that pruning needs: none where partition values are enough."""
    asked = {leaf.field_id for leaf in leaves(predicate) if not _is_partition(leaf, view)}
    asked |= index.equality_ids
    if not asked:
        return []
    kinds = [view.schema.by_id[number].type for number in asked if number in view.schema.by_id]
    floating = any(pa.types.is_floating(kind) for kind in kinds)
    return [*METRICS_COLUMNS, *([NAN_COLUMN] if floating else [])]


def _is_partition(leaf: Leaf, view: TableView) -> bool:
    """Return whether every spec has the leaf's column as it is."""
    return all(
        any(
            each.source_id == leaf.field_id and each.transform == "identity" for each in spec.fields
        )
        for spec in view.specs.values()
    )


def _files_listed(manifests: pa.Table, found: Mapping[int, pa.Table]) -> int:
    """Return how many live data files manifests list; v1 may not count them."""
    counts = pc.add(manifests["added_files_count"], manifests["existing_files_count"])
    read: int = sum(table.num_rows for table in found.values())
    listed: int = pc.sum(counts).as_py() or 0
    return max(listed, read)
