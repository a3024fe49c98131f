"""`health`: how a table is, by its metadata, and what to run where it is not well.

Comes in: a table. Goes out: a `Health`. Nothing is written; data files are not opened. Only
`orphans=True` lists storage, since no metadata names what it has forgotten.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from rowlake.maintain.autopilot import health_checks as files
from rowlake.maintain.autopilot import health_metadata as metadata
from rowlake.maintain.autopilot.survey import survey
from rowlake.model.health import Health

if TYPE_CHECKING:
    from rowlake.engine.spark import Engine
    from rowlake.maintain.autopilot.survey import Survey
    from rowlake.model.handle import TableHandle
    from rowlake.model.health import Finding

CHECKS = (
    files.check_small_files,
    files.check_depth,
    files.check_deleted_rows,
    files.check_delete_files,
    files.check_equality_deletes,
    files.check_dangling,
    metadata.check_snapshots,
    metadata.check_metadata,
    metadata.check_manifests,
    metadata.check_clustering,
)


def health(
    handle: TableHandle, engine: Engine, *, branch: str = "main", orphans: bool = False
) -> Health:
    """Return how the head of a branch is; `orphans` lists storage to count orphan files."""
    started = time.perf_counter()
    seen = survey(handle, branch=branch)
    counted = _orphans(handle, engine) if orphans else None
    return replace(
        health_of(seen, metadata.check_orphans(seen, counted)),
        seconds=time.perf_counter() - started,
    )


def health_of(seen: Survey, *more: Finding) -> Health:
    """Return what the checks say of a survey, and what else was found."""
    return Health(
        table=seen.name,
        snapshot_id=seen.view.snapshot_id,
        findings=(*(check(seen) for check in CHECKS), *more),
        data_files=seen.count,
        delete_files=seen.deletes.count,
        partitions=seen.partition_count,
        record_count=int(seen.rows.sum()),
        size_in_bytes=int(seen.sizes.sum()),
    )


def _orphans(handle: TableHandle, engine: Engine) -> int:
    """Return how many files a listing finds that belong to nothing."""
    from rowlake.maintain.cleanup.orphans import remove_orphan_files

    _, report = remove_orphan_files(handle, engine, dry_run=True)
    return len(report.orphan_file_location)
