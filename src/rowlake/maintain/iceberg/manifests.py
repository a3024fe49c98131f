"""rewrite_manifests: few manifests, each of neighbouring partitions, so that scans skip most.

Comes in: a table. Goes out: the table after a `replace` snapshot with the same files, and a report.
Manifests of data and of deletes are rewritten alike, those of one spec per call, as Iceberg does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rowlake.errors import InvalidStatementError, shown
from rowlake.iceberg.listing import live_manifests
from rowlake.iceberg.manifest_rewrite import Clustering
from rowlake.maintain.guard import check_outside_transaction
from rowlake.maintain.iceberg.handles import iceberg_handle
from rowlake.maintain.iceberg.manifest_commit import ManifestCommit
from rowlake.model.report import Report
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.engine.spark import Engine
    from rowlake.iceberg.manifest_rewrite import RewrittenManifests
    from rowlake.model.handle import TableHandle

VERB = "rewrite_manifests"


@dataclass(frozen=True)
class RewriteManifestsReport(Report):
    """What became of the manifests; `snapshot_id` is None where none had to be rewritten."""

    always_shown: ClassVar[tuple[str, ...]] = ("rewritten_manifests_count", "added_manifests_count")

    rewritten_manifests_count: int
    added_manifests_count: int
    entries_processed: int = 0
    snapshot_id: int | None = None
    dry_run: bool = False
    rewritten_manifests: tuple[str, ...] = ()
    retries: int = 0
    seconds: float = 0.0


def rewrite_manifests(
    handle: TableHandle,
    engine: Engine,
    *,
    use_caching: bool | None = None,
    spec_id: int | None = None,
    sort_by: Sequence[str] | None = None,
    branch: str = "main",
    dry_run: bool = False,
) -> tuple[TableHandle, RewriteManifestsReport]:
    """Rewrite the manifests of a spec (the current one by default), clustered by partition.

    `sort_by` names the partition fields to cluster by. `use_caching` is Spark's affair in
    Iceberg; here manifests are columns in memory either way.
    """
    del engine, use_caching
    handle = iceberg_handle(handle, VERB)
    check_outside_transaction(handle, VERB)
    started = time.perf_counter()
    clustering = _clustering(handle, spec_id, sort_by)
    if branch != "main":
        handle.view(ref=branch)  # says so where there is none
    commit = ManifestCommit(clustering, Storage(handle.io_properties), branch)
    if dry_run:
        planned = commit.plan(handle)
        return handle, _report(planned, dry_run=True, seconds=time.perf_counter() - started)
    done = commit.run(handle)
    report = _report(
        done.rewritten,
        snapshot_id=done.snapshot_id,
        retries=done.retries,
        seconds=time.perf_counter() - started,
    )
    return done.handle, report


def forget_removed_files(handle: TableHandle, branch: str, operation: str) -> TableHandle:
    """Rewrite all manifests of a branch without entries of files that were removed.

    Such entries keep the bounds of the files, which are values of rows.
    """
    found: TableHandle = iceberg_handle(handle, operation)
    view = found.view(ref=branch)
    storage = Storage(view.io_properties)
    listed = live_manifests(view, storage)
    for spec_id in listed["partition_spec_id"].unique().to_pylist():
        commit = ManifestCommit(Clustering(spec_id, always=True), storage, branch, operation)
        found = commit.run(found).handle
    return found


def _clustering(
    handle: TableHandle, spec_id: int | None, sort_by: Sequence[str] | None
) -> Clustering:
    view = handle.view()
    wanted = view.default_spec_id if spec_id is None else spec_id
    if wanted not in view.specs:
        raise InvalidStatementError(
            f"Cannot rewrite manifests of {handle.name}: it has no partition spec {wanted}; it "
            f"has {shown(sorted(view.specs))}."
        )
    if sort_by is None:
        return Clustering(wanted)
    names = [field.name for field in view.specs[wanted].fields]
    unknown = [name for name in sort_by if name not in names]
    if isinstance(sort_by, str) or not sort_by or unknown:
        raise InvalidStatementError(
            f"Cannot rewrite manifests of {handle.name}: sort_by must be a list of partition "
            f"fields of spec {wanted} ({shown(names) or 'it has none'}), not {sort_by!r}."
        )
    return Clustering(wanted, tuple(dict.fromkeys(sort_by)))


def _report(
    rewritten: RewrittenManifests,
    *,
    snapshot_id: int | None = None,
    dry_run: bool = False,
    retries: int = 0,
    seconds: float,
) -> RewriteManifestsReport:
    return RewriteManifestsReport(
        rewritten_manifests_count=rewritten.replaced.num_rows,
        added_manifests_count=rewritten.added.num_rows,
        entries_processed=rewritten.entries,
        snapshot_id=snapshot_id,
        dry_run=dry_run,
        rewritten_manifests=tuple(rewritten.replaced["location"].to_pylist()),
        retries=retries,
        seconds=seconds,
    )
