"""The files of a snapshot, listed by its manifests.

Manifests whose partition summaries rule a predicate out are not read, and only the columns that
somebody asks for are decoded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import UnsupportedFeatureError
from rowlake.iceberg.manifest_list import has_live_files, read_manifest_list
from rowlake.iceberg.manifest_read import read_live_entries
from rowlake.model.files import MANIFESTS
from rowlake.model.predicate import FALSE
from rowlake.prune.match import manifests_may_match

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rowlake.model.format import TaskRunner
    from rowlake.model.predicate import Predicate
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage

DATA, DELETES = 0, 1


@dataclass
class ManifestListing:
    """The live files of a view that may hold a row of a bound predicate."""

    view: TableView
    predicate: Predicate
    storage: Storage
    runner: TaskRunner | None = None
    _files_read: int = field(default=0, init=False)

    @cached_property
    def manifests(self) -> pa.Table:
        """The manifests (`MANIFESTS`) that list any live file of the snapshot."""
        return live_manifests(self.view, self.storage)

    @cached_property
    def _kept(self) -> pa.Table:
        if self.predicate == FALSE:
            return self.manifests.slice(0, 0)
        mask = manifests_may_match(
            self.manifests, self.predicate, self.view.specs, self.view.schema
        )
        return self.manifests.filter(mask)

    @property
    def units_considered(self) -> int:
        """How many manifests the snapshot has."""
        return int(self.manifests.num_rows)

    @property
    def units_pruned(self) -> int:
        """How many manifests cannot list a matching file."""
        return int(self.manifests.num_rows - self._kept.num_rows)

    @property
    def files_considered(self) -> int:
        """How many live data files the snapshot has; v1 may not count them, `data` does."""
        manifests = _of(self.manifests, DATA)
        counts = pc.add(manifests["added_files_count"], manifests["existing_files_count"])
        return max(pc.sum(counts).as_py() or 0, self._files_read)

    @property
    def data_spec_ids(self) -> set[int]:
        """The specs of the manifests that list live data files; none of them is read."""
        return set(_of(self._kept, DATA)["partition_spec_id"].to_pylist())

    def data(self, columns: Iterable[str] | None = None) -> dict[int, pa.Table]:
        """Return the data files of the manifests kept, by spec."""
        found = self._read(_of(self._kept, DATA), columns)
        self._files_read = sum(table.num_rows for table in found.values())
        return found

    def deletes(
        self,
        columns: Iterable[str] | None = None,
        *,
        added_by: Collection[int] | None = None,
    ) -> dict[int, pa.Table]:
        """Return the delete files of the manifests kept, by spec."""
        manifests = _of(self._kept, DELETES)
        if added_by is None:
            return self._read(manifests, columns)
        wanted = pa.array(sorted(added_by), pa.int64())
        written = manifests.filter(pc.is_in(manifests["added_snapshot_id"], wanted))
        found = self._read(written, columns)
        return {
            spec_id: table.filter(pc.is_in(table["snapshot_id"], wanted))
            for spec_id, table in found.items()
        }

    @property
    def units(self) -> pa.Table:
        """The manifests that list any live file of the snapshot."""
        return self.manifests

    def _read(self, manifests: pa.Table, columns: Iterable[str] | None) -> dict[int, pa.Table]:
        return read_live_entries(
            manifests, self.view, self.storage, columns=columns, runner=self.runner
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
