"""The files of a version as planning reads them: adds as data files, their vectors as deletes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.delta import clustering
from rowlake.delta.partitions import partitions_of
from rowlake.delta.schema import columns_of
from rowlake.delta.statistics import Statistics, all_ids
from rowlake.delta.vectors import vector_columns
from rowlake.errors import UnsupportedFeatureError
from rowlake.model.files import MANIFESTS, Content, Status, files_schema
from rowlake.model.predicate import FALSE, leaves
from rowlake.model.transform import partition_type
from rowlake.model.view import CLUSTERED
from rowlake.prune.fact_sources import PartitionFacts
from rowlake.prune.match import some_row

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rowlake.delta.schema import TableColumns
    from rowlake.delta.state import LogState
    from rowlake.delta.view import DeltaView
    from rowlake.model.predicate import Predicate

SPEC_ID = 0
METRICS = ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")


@dataclass(frozen=True)
class FileRows:
    """Adds or removes of a table (`FILES`) as rows of `files_schema`.

    With a `version`, all of them are of that one.
    """

    files: pa.Table
    state: LogState
    columns: TableColumns
    status: Status = Status.EXISTING
    version: int | None = None

    def data(self, wanted: Iterable[str] | None = None, ids: tuple[int, ...] = ()) -> pa.Table:
        """Return data files; `ids` are the fields of which statistics are wanted."""
        files, names = self.files, self._names(wanted)
        found = {
            **self._shared(files),
            "content": _repeated(int(Content.DATA), files, pa.int8()),
            "location": files["location"],
            "file_format": _repeated("PARQUET", files, pa.string()),
            "file_size_in_bytes": pc.fill_null(files["size"], 0),
            **self._lineage(files),
        }
        if "sort_order_id" in names:
            found["sort_order_id"] = self._orders(files)
        if {"record_count", *METRICS} & set(names):
            has_metrics = bool(set(METRICS) & set(names))
            statistics = Statistics(files, self.state, self.columns, ids if has_metrics else ())
            found["record_count"] = statistics.record_counts
            found |= statistics.maps() if has_metrics else {}
        return self._table(found, files.num_rows, names)

    def deletes(self, wanted: Iterable[str] | None = None) -> pa.Table:
        """Return the deletion vectors as delete files."""
        files = self.files.filter(pc.is_valid(self.files["storage_type"]))
        found = {
            **self._shared(files),
            "content": _repeated(int(Content.POSITION_DELETES), files, pa.int8()),
            **(vector_columns(files, self.state.table) if files.num_rows else {}),
        }
        return self._table(found, files.num_rows, self._names(wanted))

    @cached_property
    def _layout(self) -> pa.Schema:
        return files_schema(partition_type(self.columns.spec, self.columns.schema))

    def _names(self, wanted: Iterable[str] | None) -> list[str]:
        asked = None if wanted is None else set(wanted)
        return [name for name in self._layout.names if asked is None or name in asked]

    def _shared(self, files: pa.Table) -> Mapping[str, pa.Array | pa.ChunkedArray]:
        version = self._versions(files)
        return {
            "status": _repeated(int(self.status), files, pa.int8()),
            "snapshot_id": version,
            "data_sequence_number": version,
            "file_sequence_number": version,
            "spec_id": _repeated(SPEC_ID, files, pa.int32()),
            "partition": self._partitions(files),
        }

    def _versions(self, files: pa.Table) -> pa.Array | pa.ChunkedArray:
        """Return the versions that added files; with row ids an add may name an older one."""
        stated = files["commit_version"]
        if self.version is not None:
            return _repeated(self.version, files, pa.int64())
        if self.status is not Status.EXISTING or not files.num_rows:
            return stated
        if files["base_row_id"].null_count == files.num_rows:
            return stated
        added = self.state.added_at
        places = pc.index_in(files["location"], value_set=added["location"])
        return pc.coalesce(added["version"].take(places), stated)

    def _lineage(self, files: pa.Table) -> Mapping[str, pa.Array | pa.ChunkedArray]:
        """Return what rows inherit that do not hold their id and version themselves."""
        if not self.columns.row_id_names:
            return {}
        first = files["base_row_id"]
        number = pc.if_else(pc.is_valid(first), files["commit_version"], self._versions(files))
        return {"first_row_id": first, "data_sequence_number": number}

    def _orders(self, files: pa.Table) -> pa.Array:
        """Return the order of files that are clustered by the table's columns, else none."""
        domains = self.state.actions.domains
        if not clustering.clustering_paths(domains) or not files.num_rows:
            return pa.nulls(files.num_rows, pa.int32())
        tags = pc.map_lookup(files["tags"].combine_chunks(), clustering.COLUMNS_TAG, "first")
        same = pc.and_(
            pc.equal(files["clustering_provider"].combine_chunks(), clustering.PROVIDER),
            pc.equal(tags, clustering.columns_text(domains)),
        )
        return pc.if_else(pc.fill_null(same, False), CLUSTERED, pa.scalar(None, pa.int32()))

    def _partitions(self, files: pa.Table) -> pa.Array:
        return partitions_of(files["partition_values"], self.columns, self.state.segment.folder)

    def _table(
        self, found: Mapping[str, pa.Array | pa.ChunkedArray], size: int, names: list[str]
    ) -> pa.Table:
        layout = pa.schema([self._layout.field(name) for name in names])
        arrays = [
            found[one.name] if one.name in found else pa.nulls(size, one.type) for one in layout
        ]
        return pa.Table.from_arrays(arrays, schema=layout)


def _repeated(value: object, files: pa.Table, kind: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), files.num_rows)


def _validate_partitions(view: DeltaView) -> None:
    """Refuse files of another version that are partitioned by other columns than the view."""
    metadata = view.state.actions.metadata
    names = [one.name for one in view.spec.fields]
    if metadata is None or list(metadata.partition_columns) == names:
        return
    then = columns_of(metadata, view.state.segment.folder)
    if _partition_names(then) != _partition_names(view.columns):
        raise UnsupportedFeatureError(
            f"Cannot read version {view.state.version} of {view.name} in the columns of a later "
            "one: its partition columns are others."
        )


def _partition_names(columns: TableColumns) -> list[str]:
    return [columns.physical[one.source_id][0] for one in columns.spec.fields]


@dataclass
class LogListing:
    """The live files of a view; a log lists them all in one unit."""

    view: DeltaView
    predicate: Predicate

    @cached_property
    def _rows(self) -> FileRows:
        """The files that partition values do not rule out; statistics are read of no others."""
        state, view = self.view.state, self.view
        _validate_partitions(view)
        files = state.files.slice(0, 0) if self.predicate == FALSE else state.files
        rows = FileRows(files, state, view.columns)
        if not view.spec.fields or not list(leaves(self.predicate)):
            return rows
        partitions = PartitionFacts(rows.data(["partition"]), view.spec, view.schema)
        kept = some_row(self.predicate, partitions)
        return rows if kept.all() else replace(rows, files=files.filter(pa.array(kept)))

    @property
    def units_considered(self) -> int:
        """One: the log."""
        return 1

    @property
    def units_pruned(self) -> int:
        """None."""
        return 0

    @property
    def files_considered(self) -> int:
        """How many live data files the version has."""
        return int(self.view.state.files.num_rows)

    @property
    def data_spec_ids(self) -> set[int]:
        """The one spec of the table."""
        return {SPEC_ID} if self._rows.files.num_rows else set()

    def data(self, columns: Iterable[str] | None = None) -> dict[int, pa.Table]:
        """Return the data files, with statistics of the columns that the predicate tests."""
        asked = {leaf.field_id for leaf in leaves(self.predicate)} - {None}
        ids = tuple(one for one in all_ids(self.view.columns) if not asked or one in asked)
        return {SPEC_ID: self._rows.data(columns, ids)}

    def deletes(
        self,
        columns: Iterable[str] | None = None,
        *,
        added_by: Collection[int] | None = None,
    ) -> dict[int, pa.Table]:
        """Return the deletion vectors."""
        if added_by is None:
            return {SPEC_ID: self._rows.deletes(columns)}
        wanted = None if columns is None else {*columns, "snapshot_id"}
        found = self._rows.deletes(wanted)
        versions = pa.array(np.array(sorted(added_by), np.int64))
        added = found.filter(pc.is_in(found["snapshot_id"], versions))
        return {SPEC_ID: added if columns is None else added.select(list(columns))}

    @property
    def units(self) -> pa.Table:
        """Return no manifests: a log has none."""
        return MANIFESTS.empty_table()
