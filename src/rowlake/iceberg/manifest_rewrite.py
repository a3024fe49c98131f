"""Manifests of one partition spec, rewritten: the same live files, clustered by partition.

Comes in: a manifest list as a table, and which of its manifests to rewrite. Goes out: the rows
that leave the list and the rows that come instead. Invariants:

- every live entry goes on once, as EXISTING, with its snapshot id, both sequence numbers and its
  first row id (`ManifestSet.rewritten_entries`);
- entries are in the order of their partitions, nulls first, so that a manifest spans few of them;
- manifests that are clustered already, and as few as they can be, stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.iceberg.manifest_reader import read_manifests
from rowlake.iceberg.manifest_set import DATA_MANIFEST, DELETE_MANIFEST
from rowlake.iceberg.partition_order import joint_ranks, partition_ranks
from rowlake.model.files import MANIFESTS
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.iceberg.manifest_set import ManifestSet
    from rowlake.model.view import TableView


@dataclass(frozen=True)
class Clustering:
    """Which manifests to rewrite: those of a spec; `sort_by` names partition fields (or none).

    Entries are sorted by these fields first, then by the other ones in the spec's order. With
    `always` manifests that are fine are rewritten too, so that entries of removed files go.
    """

    spec_id: int
    sort_by: tuple[str, ...] = ()
    always: bool = False


@dataclass(frozen=True)
class RewrittenManifests:
    """What leaves the manifest list and what comes instead (`MANIFESTS`); `written` are files."""

    replaced: pa.Table
    added: pa.Table
    entries: int
    written: tuple[str, ...] = ()

    def fits(self, listed: pa.Table) -> bool:
        """Return whether everything that is replaced is (still) in a list."""
        return bool(pc.all(pc.is_in(self.replaced["location"], listed["location"])).as_py())

    def kept(self, listed: pa.Table) -> pa.Table:
        """Return the rows of a list that stay."""
        return listed.filter(pc.invert(pc.is_in(listed["location"], self.replaced["location"])))


class UnwrittenStorage(Storage):
    """Storage that forgets what is written: to see what would be."""

    def write(self, location: str, data: bytes) -> None:
        """Write nothing."""


def rewrite_manifests(
    target: ManifestSet, listed: pa.Table, clustering: Clustering, *, dry_run: bool = False
) -> RewrittenManifests:
    """Rewrite the manifests of a spec, those of data and those of deletes.

    Where all are fine nothing is replaced. A dry run counts what would be, and writes nothing.
    """
    sink = _unwritten(target) if dry_run else target
    replaced, added, entries = [MANIFESTS.empty_table()], [MANIFESTS.empty_table()], 0
    of_spec = listed.filter(pc.equal(listed["partition_spec_id"], clustering.spec_id))
    for content in (DATA_MANIFEST, DELETE_MANIFEST):
        group = of_spec.filter(pc.equal(of_spec["content"], content))
        found = _sorted_entries(target, group, clustering)
        if found is None:
            continue
        replaced.append(group)
        if found.num_rows:
            added.append(sink.write(found, clustering.spec_id, content))
        entries += found.num_rows
    written = () if dry_run else tuple(target.written)
    return RewrittenManifests(pa.concat_tables(replaced), pa.concat_tables(added), entries, written)


def _unwritten(target: ManifestSet) -> ManifestSet:
    return replace(target, storage=UnwrittenStorage(target.storage.properties), written=[])


def _sorted_entries(
    target: ManifestSet, group: pa.Table, clustering: Clustering
) -> pa.Table | None:
    """Return what new manifests of a group hold, in order; None where the group is fine."""
    largest = pc.max(group["manifest_length"]).as_py() or 0
    is_one = group.num_rows == 1 and largest <= target.target_size_in_bytes
    if group.num_rows == 0 or (is_one and not clustering.always):
        return None
    found = read_manifests(group, target.view, target.storage).get(clustering.spec_id)
    if found is None:
        return target.empty_entries(clustering.spec_id)
    ranks = partition_ranks(found["partition"])
    first = sort_positions(target.view, clustering)
    others = [at for at in range(len(ranks)) if at not in first]
    order = np.lexsort([ranks[at] for at in reversed([*first, *others])]) if ranks else None
    entries = found if order is None else found.take(pa.array(order))
    entries = target.rewritten_entries(entries, pa.repeat(pa.scalar(False), entries.num_rows))
    if not clustering.always and _is_clustered(group, [ranks[at] for at in first], found.num_rows):
        content = group["content"][0].as_py()
        rewritten = _unwritten(target).write(entries, clustering.spec_id, content)
        if rewritten.num_rows == group.num_rows:
            return None
    return entries


def sort_positions(view: TableView, clustering: Clustering) -> list[int]:
    """Return the places of the fields to cluster by within the spec; all where none is named."""
    names = [field.name for field in view.specs[clustering.spec_id].fields]
    return [names.index(name) for name in clustering.sort_by or names]


def _is_clustered(group: pa.Table, keys: Sequence[np.ndarray], count: int) -> bool:
    """Return whether manifests' partitions do not overlap; they may share one at an end."""
    live = pc.add(group["added_files_count"], group["existing_files_count"])
    if live.null_count or pc.sum(live).as_py() != count:
        return False
    sizes = np.asarray(live)
    if not keys or not count:
        return True
    ranks = joint_ranks(keys)
    starts = (np.cumsum(sizes) - sizes)[sizes > 0]
    lowest, highest = np.minimum.reduceat(ranks, starts), np.maximum.reduceat(ranks, starts)
    order = np.lexsort([highest, lowest])
    return bool((highest[order][:-1] <= lowest[order][1:]).all())
