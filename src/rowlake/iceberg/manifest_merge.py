"""Merging small manifests into larger ones when a snapshot is made.

Comes in: the manifests of a new snapshot. Goes out: fewer of them. The rule is Iceberg Java's:
manifests of one spec are packed from the oldest end into bins of the target size; a bin of one
stays, and so does the newest bin until it has `min_count` manifests, so that a table which only
grows rewrites each entry a bounded number of times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.files import MANIFESTS
from rowlake.model.properties import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rowlake.iceberg.manifest_set import ManifestSet


@dataclass(frozen=True)
class MergePolicy:
    """When to merge: the table properties `commit.manifest-merge.enabled`, `commit.manifest.*`."""

    enabled: bool
    min_count: int
    target_size_in_bytes: int


def merge_policy(properties: Mapping[str, str]) -> MergePolicy:
    """Return the policy that the table's properties ask for."""
    return MergePolicy(
        enabled=properties.get("commit.manifest-merge.enabled", "true").lower() == "true",
        min_count=whole_number(properties, "commit.manifest.min-count-to-merge", 100),
        target_size_in_bytes=whole_number(
            properties, "commit.manifest.target-size-bytes", 8_388_608, least=1
        ),
    )


def merge_manifests(
    manifests: pa.Table,
    target: ManifestSet,
    policy: MergePolicy,
    entries_of: Callable[[pa.Table], pa.Table],
) -> pa.Table:
    """Return the manifests (newest first, all of one content) with small ones merged.

    `entries_of` returns what of a manifest goes on into the new snapshot: its live entries, and
    those that this snapshot adds or removes.
    """
    if not policy.enabled or manifests.num_rows < 2:
        return manifests
    merged = [MANIFESTS.empty_table()]
    for spec_id in sorted(pc.unique(manifests["partition_spec_id"]).to_pylist(), reverse=True):
        of_spec = manifests.filter(pc.equal(manifests["partition_spec_id"], spec_id))
        lengths = of_spec["manifest_length"].to_pylist()
        for first, last in _bins(lengths, policy.target_size_in_bytes):
            group = of_spec.slice(first, last - first)
            if group.num_rows == 1 or (first == 0 and group.num_rows < policy.min_count):
                merged.append(group)
                continue
            rows = [entries_of(group.slice(index, 1)) for index in range(group.num_rows)]
            content = group["content"][0].as_py()
            merged.append(target.write(pa.concat_tables(rows), spec_id, content))
    return pa.concat_tables(merged)


def _bins(lengths: list[int], target: int) -> list[tuple[int, int]]:
    """Pack consecutive items from the end; the first bin (the newest) takes what is left over."""
    bins: list[tuple[int, int]] = []
    last = len(lengths)
    size = 0
    for index in range(len(lengths) - 1, -1, -1):
        if size and size + lengths[index] > target:
            bins.append((index + 1, last))
            last, size = index + 1, 0
        size += lengths[index]
    bins.append((0, last))
    return bins[::-1]
