"""The files of all snapshots of a table, and what the metadata says of its own files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.iceberg.manifest_read import read_live_entries
from rowlake.iceberg.manifest_reader import read_manifests
from rowlake.iceberg.reachable import manifests_of, metadata_files, parts_of_files
from rowlake.iceberg.unreachable import files_left_behind
from rowlake.model.health import MetadataFacts
from rowlake.model.reachable import Kind, of_kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from rowlake.catalog.handle import IcebergHandle
    from rowlake.model.format import TaskRunner
    from rowlake.model.handle import TableHandle
    from rowlake.model.reachable import LeftBehind

_VERSION = re.compile(r"(?:^|/)v?(\d+)(?:-[^/]*)?(?:\.gz)?\.metadata\.json(?:\.gz)?$")


@dataclass(frozen=True)
class ManifestHistory:
    """What the manifests of all snapshots list (`rowlake.model.reachable.FileHistory`)."""

    handle: IcebergHandle
    runner: TaskRunner | None = None

    def metadata_files(self) -> pa.Table:
        """Return metadata files, manifest lists and statistics files."""
        return metadata_files(self.handle)

    def reachable(self, *, since: TableHandle | None = None) -> Iterator[pa.Table]:
        """Yield metadata files, then manifests, then what they list.

        Only what new snapshots name can be new among data files, and only in manifests that no
        snapshot had before.
        """
        yield self.metadata_files()
        manifests = self._manifests(since)
        yield of_kind(manifests["location"], Kind.MANIFEST)
        yield from parts_of_files(self.handle, manifests, self.runner)

    def _manifests(self, since: TableHandle | None) -> pa.Table:
        if since is None:
            return manifests_of(self.handle)
        old = {snapshot.snapshot_id for snapshot in since.snapshots}
        new = {snapshot.snapshot_id for snapshot in self.handle.snapshots} - old
        found = manifests_of(self.handle, new)
        added_by = pa.array(sorted(old), pa.int64())
        return found.filter(pc.invert(pc.is_in(found["added_snapshot_id"], value_set=added_by)))

    def files(self, columns: Iterable[str]) -> dict[int, pa.Table]:
        """Return the live entries of all manifests, each file once."""
        found = read_live_entries(
            manifests_of(self.handle),
            self.handle.view(),
            self.handle.storage,
            columns=columns,
            runner=self.runner,
        )
        return {spec_id: _each_once(table) for spec_id, table in found.items()}

    def snapshots_naming(self, locations: Collection[str]) -> list[int]:
        """Return the snapshots with a manifest that has an entry of one of some files."""
        wanted = pa.array(sorted(locations), pa.string())
        names: dict[str, bool] = {}
        found = []
        for snapshot in self.handle.snapshots:
            manifests = manifests_of(self.handle, [snapshot.snapshot_id])
            listed = manifests["location"].to_pylist()
            for number, location in enumerate(listed):
                if location not in names:
                    names[location] = self._has_entry(manifests.slice(number, 1), wanted)
            if any(names[location] for location in listed):
                found.append(snapshot.snapshot_id)
        return found

    def _has_entry(self, manifest: pa.Table, wanted: pa.Array) -> bool:
        found = read_manifests(
            manifest,
            self.handle.view(),
            self.handle.storage,
            columns=("location",),
            live_only=False,
        )
        return any(pc.any(pc.is_in(one["location"], wanted)).as_py() for one in found.values())

    def left_behind(self, after: TableHandle) -> LeftBehind:
        """Return what only snapshots reached that are gone."""
        return files_left_behind(self.handle, cast("IcebergHandle", after), self.runner)


def _each_once(table: pa.Table) -> pa.Table:
    """Return one entry for each file: several manifests of a history may list it."""
    _, first = np.unique(table["location"].to_numpy(zero_copy_only=False), return_index=True)
    return table.take(pa.array(np.sort(first)))


def metadata_facts(handle: IcebergHandle) -> MetadataFacts:
    """Return what the metadata says of its own files."""
    metadata = handle.metadata
    return MetadataFacts(
        location=handle.metadata_location,
        schemas=len(metadata.schemas),
        log_entries=len(metadata.metadata_log),
        outdated_files=_outdated_files(handle),
    )


def _outdated_files(handle: IcebergHandle) -> int:
    """Return how many metadata files have left the log, by their numbers."""
    found = _VERSION.search(handle.metadata_location or "")
    return max(int(found[1]) - len(handle.metadata.metadata_log), 0) if found else 0
