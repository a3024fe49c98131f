"""Which files the metadata of a table reaches, as columns.

Comes in: a table handle, of which snapshots are looked at. Goes out: tables of `REACHABLE`, each
location once, as the metadata spells it. Invariant: what a reader of one of the snapshots would
open is in the answer; entries that a manifest marks as deleted are not.

Manifests are read some at a time, so that memory holds the locations and not the manifests.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.iceberg.manifest_list import read_manifest_list
from rowlake.iceberg.manifest_read import read_live_entries
from rowlake.model.files import MANIFESTS
from rowlake.model.reachable import REACHABLE, Kind, distinct, of_kind
from rowlake.storage.locations import join

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from rowlake.catalog.handle import IcebergHandle
    from rowlake.model.format import TaskRunner

LISTING_THREADS = 16
# Manifests are read in parts of about this size; parsed, they are several times larger.
PART_BYTES = 64 * 1024 * 1024
VERSION_HINT = "version-hint.text"


def manifests_of(handle: IcebergHandle, snapshot_ids: Iterable[int] | None = None) -> pa.Table:
    """Return the manifests of some snapshots (None: of all), each once, as rows of `MANIFESTS`."""
    wanted = None if snapshot_ids is None else frozenset(snapshot_ids)
    lists = [
        snapshot.manifest_list
        for snapshot in handle.snapshots
        if snapshot.manifest_list and (wanted is None or snapshot.snapshot_id in wanted)
    ]
    with ThreadPoolExecutor(LISTING_THREADS) as pool:
        listed = list(pool.map(lambda at: read_manifest_list(at, handle.storage), lists))
    return first_of_each(pa.concat_tables([MANIFESTS.empty_table(), *listed]))


def spec_ids_of(handle: IcebergHandle, snapshot_ids: Collection[int]) -> set[int]:
    """Return the partition specs that the manifests of some snapshots are of."""
    return set(manifests_of(handle, snapshot_ids)["partition_spec_id"].unique().to_pylist())


def first_of_each(manifests: pa.Table) -> pa.Table:
    """Return the first row of each location, in their order."""
    if manifests.num_rows < 2:
        return manifests
    places = pa.array(np.arange(manifests.num_rows))
    grouped = pa.table({"location": manifests["location"], "place": places}).group_by("location")
    kept = grouped.aggregate([("place", "min")])["place_min"]
    if len(kept) == manifests.num_rows:
        return manifests
    return manifests.take(pc.take(kept, pc.sort_indices(kept)))


def files_in(
    handle: IcebergHandle, manifests: pa.Table, runner: TaskRunner | None = None
) -> pa.Table:
    """Return the live data and delete files of manifests, each once.

    A Puffin file is there once, however many of its vectors are live. The specs of the manifests
    must be in the handle's metadata.
    """
    parts = [REACHABLE.empty_table(), *parts_of_files(handle, manifests, runner)]
    return distinct(pa.concat_tables(parts))


def parts_of_files(
    handle: IcebergHandle, manifests: pa.Table, runner: TaskRunner | None = None
) -> Iterator[pa.Table]:
    """Yield `files_in` part by part; a file may come in several parts."""
    view = handle.view()
    for part in some_at_a_time(_with_live_files(manifests)):
        found = read_live_entries(
            part, view, handle.storage, columns=("location", "content"), runner=runner
        )
        for files in found.values():
            named = pa.table([files["location"], files["content"]], names=REACHABLE.names)
            yield distinct(named.cast(REACHABLE))


def _with_live_files(manifests: pa.Table) -> pa.Table:
    """Return the manifests that readers open; one of only deleted entries counts none as live."""
    live = pc.add(manifests["added_files_count"], manifests["existing_files_count"])
    return manifests.filter(pc.fill_null(pc.greater(live, 0), True))


def some_at_a_time(manifests: pa.Table) -> Iterator[pa.Table]:
    """Yield manifests in their order, some of `PART_BYTES` together."""
    if not manifests.num_rows:
        return
    sizes = manifests["manifest_length"].to_numpy()
    numbers = (np.cumsum(sizes) - sizes) // PART_BYTES
    starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    for start, end in zip(starts, [*starts[1:], len(sizes)], strict=True):
        yield manifests.slice(start, end - start)


def metadata_files(handle: IcebergHandle) -> pa.Table:
    """Return what the metadata names itself: all but manifests and what they hold.

    The version hint is named for every table, as one of the file system has it.
    """
    metadata = handle.metadata
    own = [entry.metadata_file for entry in metadata.metadata_log]
    own += [handle.metadata_location or "", join(metadata.location, "metadata", VERSION_HINT)]
    lists = [snapshot.manifest_list or "" for snapshot in metadata.snapshots]
    return pa.concat_tables(
        [
            of_kind([location for location in dict.fromkeys(own) if location], Kind.METADATA),
            of_kind(
                [location for location in dict.fromkeys(lists) if location], Kind.MANIFEST_LIST
            ),
            statistics_of(handle),
        ]
    )


def statistics_of(handle: IcebergHandle, snapshot_ids: Collection[int] | None = None) -> pa.Table:
    """Return the statistics files of some snapshots (None: all), those of partitions too."""
    metadata = handle.metadata
    found = [*metadata.statistics, *metadata.partition_statistics]
    locations = dict.fromkeys(
        one.statistics_path
        for one in found
        if snapshot_ids is None or one.snapshot_id in snapshot_ids
    )
    return of_kind(list(locations), Kind.STATISTICS)
