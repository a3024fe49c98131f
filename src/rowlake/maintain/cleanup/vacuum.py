"""VACUUM: what Delta's users mean by it, on an Iceberg table.

Snapshots older than the retention expire, and files that no snapshot needs go: those that only
expired ones reached, and orphans older than the retention. Orphans are looked for before anything
expires, so that a dry run lists exactly what a run removes.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from rowlake.errors import InvalidStatementError
from rowlake.maintain.cleanup.expire import expire_snapshots
from rowlake.maintain.cleanup.identity import equality
from rowlake.maintain.cleanup.orphan_places import own_places
from rowlake.maintain.cleanup.orphan_search import MS_PER_HOUR, SHORTEST_AGE_MS, Search
from rowlake.maintain.cleanup.orphans import find_orphans, remove_found
from rowlake.maintain.guard import check_outside_transaction
from rowlake.model.report import Report
from rowlake.storage.ownership import NAMED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle

DEFAULT_HOURS = 168.0


@dataclass(frozen=True)
class VacuumReport(Report):
    """The files that went (or would go, in a dry run), and the snapshots that expired.

    `failures` could not be deleted and are left over. `left_foreign` are the first of
    `left_foreign_count` files that are left alone since they are not the table's own.
    """

    always_shown: ClassVar[tuple[str, ...]] = ("files_count", "dry_run")

    path: tuple[str, ...] = field(default=(), repr=False)
    files_count: int = 0
    orphan_files_count: int = 0
    expired_snapshot_ids: tuple[int, ...] = ()
    snapshot_id: int | None = None
    dry_run: bool = True
    skipped_folders: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    left_foreign: tuple[str, ...] = ()
    left_foreign_count: int = 0


def vacuum(
    handle: TableHandle,
    engine: Engine,
    *,
    retain_hours: float | None = None,
    dry_run: bool = True,
    also_below: Sequence[str] | str | None = (),
) -> tuple[TableHandle, VacuumReport]:
    """Expire what is older than the retention and remove the files that nothing needs then.

    Raises InvalidStatementError for a retention below a day: files that others are writing would
    be lost.
    """
    check_outside_transaction(handle, "vacuum")
    older_than_ms = int(time.time() * 1000 - checked_hours(retain_hours) * MS_PER_HOUR)
    equal = equality()
    owned = handle.format.ownership(handle, also_below)
    wanted = Search(older_than_ms, own_places(handle, equal, owned), equal)
    found = find_orphans(handle, engine, wanted)
    after, expired = expire_snapshots(
        found.handle,
        engine,
        older_than_ms=older_than_ms,
        also_below=also_below,
        dry_run=dry_run,
    )
    left: list[str] = []
    if not dry_run:
        found, left = remove_found(found, engine)
        after = found.handle
    orphans = found.locations.to_pylist()
    return after, VacuumReport(
        path=(*expired.deleted_files, *orphans),
        files_count=len(expired.deleted_files) + len(orphans),
        orphan_files_count=len(orphans),
        expired_snapshot_ids=expired.expired_snapshot_ids,
        snapshot_id=after.current_snapshot_id,
        dry_run=dry_run,
        skipped_folders=found.skipped,
        failures=(*expired.failed_files, *left),
        left_foreign=(*expired.left_foreign, *found.foreign)[:NAMED],
        left_foreign_count=expired.left_foreign_count + len(found.foreign),
    )


def checked_hours(hours: float | None) -> float:
    """Return the hours that are kept; a week where none are given."""
    if hours is None:
        return DEFAULT_HOURS
    if not isinstance(hours, (int, float)) or isinstance(hours, bool) or not math.isfinite(hours):
        raise InvalidStatementError(f"The hours that VACUUM retains must be a number, not {hours}.")
    if hours * MS_PER_HOUR < SHORTEST_AGE_MS:
        raise InvalidStatementError(
            f"Cannot vacuum with {hours:g} hours of retention: files that others are writing right "
            f"now would be lost. Retain 24 hours or more; remove_orphan_files(force=True) is for "
            f"tables that nobody else writes to."
        )
    return float(hours)
