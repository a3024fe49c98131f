"""Which data files a read must open, and which deletes apply to them.

Comes in: a table at a snapshot and a predicate. Goes out: a `FilePlan`. Planning has two phases
(paper §3.2.5): first the delete files that can matter become an index, then data files are
pruned and matched with it. The format lists the files (`Format.list_files`), with only the columns
that are needed. No Python object is made per file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.predicate import TRUE, Leaf, Predicate, leaves
from rowlake.model.task import size_of_rows
from rowlake.plan.delete_index import Applied, DeleteIndex
from rowlake.prune.bind import bind
from rowlake.prune.match import matching_deletes, matching_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy as np

    from rowlake.model.format import TaskRunner
    from rowlake.model.partition import PartitionSpec
    from rowlake.model.schema import Schema
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage

    Prune = Callable[[pa.Table, Predicate, PartitionSpec, Schema], pa.Table]

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


@dataclass(frozen=True)
class FilePlan:
    """The files of a read: `data` by spec, `deletes` as an index; what was looked at, in counts.

    `predicate` is bound. `data` has `FILE_COLUMNS`, and the metrics that pruning needed. `rows` are
    sorted positions by location: of these files no other row can match.
    """

    view: TableView
    predicate: Predicate
    data: Mapping[int, pa.Table]
    deletes: DeleteIndex
    units_considered: int = 0
    units_pruned: int = 0
    files_considered: int = 0
    rows: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)

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
        """What is read of the data files: all of them, or the pages of some rows."""
        total = self._total("file_size_in_bytes")
        return total - self._unread if self.rows else total

    @property
    def _unread(self) -> int:
        """The bytes of files that are passed over, since other rows are wanted."""
        names = ("location", "file_size_in_bytes", "record_count")
        unread = 0
        for table in self.data.values():
            columns = [table[name].to_pylist() for name in names]
            for location, size, count in zip(*columns, strict=True):
                if location in self.rows:
                    unread += size - size_of_rows(size, count, len(self.rows[location]))
        return unread

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
    runner: TaskRunner | None = None,
) -> FilePlan:
    """Plan the read of a table: the data files that may hold a row of the predicate.

    Deletes that cannot touch a matching row are left out, so rows that do not match may come back
    to life: a caller that keeps such rows (a rewrite of the files) sets `whole_files`. `columns`
    are further columns of `files_schema` wanted in `data`; `runner` may run tasks for them. Raises
    `InvalidStatementError` for a predicate that does not fit the schema.
    """
    bound = TRUE if predicate is None else bind(predicate, view.schema)
    listing = view.format.list_files(view, bound, storage, runner=runner)
    deletes = _pruned(
        listing.deletes(DELETE_COLUMNS), view, TRUE if whole_files else bound, matching_deletes
    )
    index = DeleteIndex(deletes, view.specs, view.schema)
    wanted = {*FILE_COLUMNS, *columns, *_metrics_columns(bound, index, view)}
    return FilePlan(
        view=view,
        predicate=bound,
        data=_pruned(listing.data(wanted), view, bound, matching_files),
        deletes=index,
        units_considered=listing.units_considered,
        units_pruned=listing.units_pruned,
        files_considered=listing.files_considered,
    )


def _pruned(
    tables: dict[int, pa.Table], view: TableView, predicate: Predicate, prune: Prune
) -> dict[int, pa.Table]:
    """Return what may match of each spec's files; specs of which nothing is left are not there."""
    if predicate == TRUE:
        return {spec_id: table for spec_id, table in tables.items() if table.num_rows}
    found = {}
    for spec_id, table in tables.items():
        kept = prune(table, predicate, view.specs[spec_id], view.schema)
        if kept.num_rows:
            found[spec_id] = kept
    return found


def _metrics_columns(predicate: Predicate, index: DeleteIndex, view: TableView) -> list[str]:
    """Return the metrics that pruning looks at: none where partition values say all."""
    asked = {leaf.field_id for leaf in leaves(predicate) if not _is_partition(leaf, view)}
    asked |= index.equality_ids
    if not asked:
        return []
    kinds = [view.schema.by_id[number].type for number in asked if number in view.schema.by_id]
    floating = any(pa.types.is_floating(kind) for kind in kinds)
    return [*METRICS_COLUMNS, *([NAN_COLUMN] if floating else [])]


def _is_partition(leaf: Leaf, view: TableView) -> bool:
    """Return whether every spec has what the leaf tests: the column, or its transform."""
    wanted = leaf.transform or "identity"
    return all(
        any(each.source_id == leaf.field_id and each.transform == wanted for each in spec.fields)
        for spec in view.specs.values()
    )
