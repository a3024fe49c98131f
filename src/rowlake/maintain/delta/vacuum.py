"""VACUUM of a Delta table: files that no version within the retention refers to are deleted.

What must stay is what `delta.retained_files` says; what may go is found by `unreferenced`. Before
each batch of deletions the log is read again, so that files which another writer brought back
meanwhile stay. History tells of it as of Delta on Spark: `VACUUM START` and `VACUUM END`.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from rowlake.catalog.ownership import folder_ownership
from rowlake.commit.metadata import commit_metadata
from rowlake.delta.commit_file import validate_storage
from rowlake.delta.features import validate_known
from rowlake.delta.new_version import Saying, new_token, new_version, token_text
from rowlake.delta.operations import Told
from rowlake.delta.retained_files import file_retention_ms, touched_files
from rowlake.engine.progress import reporting
from rowlake.errors import CommitConflictError, InvalidStatementError, RowlakeError
from rowlake.maintain.cleanup.vacuum import VacuumReport
from rowlake.maintain.delta.handles import delta_handle
from rowlake.maintain.delta.unreferenced import list_folder, unreferenced, without
from rowlake.maintain.guard import GC_ENABLED, check_outside_transaction, may_delete_files
from rowlake.storage.ownership import NAMED
from rowlake.storage.places import are_below_without_links

if TYPE_CHECKING:
    from rowlake.delta.handle import DeltaHandle
    from rowlake.engine.spark import Engine
    from rowlake.maintain.delta.unreferenced import Unreferenced
    from rowlake.model.handle import TableHandle

VERB = "VACUUM"
CHECK_SETTING = "spark.databricks.delta.retentionDurationCheck.enabled"
MS_PER_HOUR = 60 * 60 * 1000
# Files of one batch; before each the log is read again.
BATCH = 5_000


@dataclass(frozen=True)
class _Retention:
    """How long removed files are kept: as asked, and as the table says."""

    asked_ms: int | None
    table_ms: int
    is_checked: bool

    @property
    def since_ms(self) -> int:
        kept = self.table_ms if self.asked_ms is None else self.asked_ms
        return int(time.time() * 1000) - kept

    def parameters(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "retentionCheckEnabled": self.is_checked,
            "defaultRetentionMillis": self.table_ms,
        }
        if self.asked_ms is not None:
            found["specifiedRetentionMillis"] = self.asked_ms
        return found


def vacuum(
    handle: TableHandle,
    engine: Engine,
    *,
    retain_hours: float | None = None,
    dry_run: bool = True,
    enforce_retention_duration: bool = True,
) -> tuple[TableHandle, VacuumReport]:
    """Delete files that no version of the last `retain_hours` refers to; a dry run lists them.

    Raises InvalidStatementError for a retention below the table's own, unless that is not to be
    enforced; UnsupportedFeatureError for table features that are not known.
    """
    check_outside_transaction(handle, "vacuum")
    table = delta_handle(handle, VERB)
    _validate(table)
    retention = _retention(table, engine, retain_hours, enforce=enforce_retention_duration)
    since_ms = retention.since_ms
    with reporting("listing files", engine.progress) as reporter:
        listed = list_folder(table, reporter)
    newest = _refreshed(table)
    found = unreferenced(newest, listed, since_ms)
    if dry_run:
        return newest, _report(newest, found, found.files, ())
    _told(newest, _start(found, retention))
    return _deleted(newest, found, engine)


def _validate(table: DeltaHandle) -> None:
    validate_known(table.state.protocol, table.name)
    validate_storage(table.folder, table.storage)
    folder_ownership(table)
    if not may_delete_files(table):
        raise InvalidStatementError(
            f"Cannot vacuum {table.name}: {GC_ENABLED} is false, since deleting files may corrupt "
            "other tables. Set the property first if they are this table's."
        )


def _retention(
    table: DeltaHandle, engine: Engine, hours: float | None, *, enforce: bool
) -> _Retention:
    own_ms = file_retention_ms(table)
    is_checked = enforce and (engine.setting(CHECK_SETTING) or "true").lower() != "false"
    if hours is None:
        return _Retention(None, own_ms, is_checked)
    if not isinstance(hours, (int, float)) or isinstance(hours, bool) or not math.isfinite(hours):
        raise InvalidStatementError(f"The hours that VACUUM retains must be a number, not {hours}.")
    if hours < 0:
        raise InvalidStatementError("The hours that VACUUM retains cannot be negative.")
    asked_ms = int(hours * MS_PER_HOUR)
    if asked_ms < own_ms and is_checked:
        raise InvalidStatementError(
            f"Cannot vacuum {table.name} with {hours:g} hours of retention: its own is "
            f"{own_ms / MS_PER_HOUR:g} hours (delta.deletedFileRetentionDuration), and readers of "
            "older versions and writers at work would lose their files. Where there are none, use "
            f"vacuum(enforce_retention_duration=False), or set {CHECK_SETTING}=false."
        )
    return _Retention(asked_ms, own_ms, is_checked)


def _start(found: Unreferenced, retention: _Retention) -> Told:
    metrics = {
        "numFilesToDelete": found.files.num_rows,
        "sizeOfDataToDelete": found.size_in_bytes,
    }
    return Told("VACUUM START", retention.parameters(), metrics)


def _told(handle: DeltaHandle, told: Told) -> DeltaHandle:
    """Commit a version that only tells of something."""
    token = token_text(new_token())

    def make(newest: TableHandle) -> Any:
        return new_version(cast("DeltaHandle", newest), (), Saying(told, token))

    return cast("DeltaHandle", commit_metadata(handle, VERB, make))


def _deleted(
    handle: DeltaHandle, found: Unreferenced, engine: Engine
) -> tuple[TableHandle, VacuumReport]:
    """Delete what was found in the log as `handle` has it, and tell how it ended."""
    try:
        removed, failed = _delete(handle, found, engine)
    except BaseException:
        with suppress(RowlakeError):  # the first error is the one to show
            _told(handle, Told("VACUUM END", {"status": "FAILED"}, {}))
        raise
    metrics = {
        "numDeletedFiles": removed.num_rows - len(failed),
        "numVacuumedDirectories": found.folders_count,
    }
    after = _told(handle, Told("VACUUM END", {"status": "COMPLETED"}, metrics))
    return after, _report(after, found, removed, tuple(failed), dry_run=False)


def _delete(handle: DeltaHandle, found: Unreferenced, engine: Engine) -> tuple[pa.Table, list[str]]:
    """Delete files batch by batch; return those that still were to go, and what is left of them."""
    removed, failed = [found.files.slice(0, 0)], list[str]()
    rest, known = found.files, handle
    with reporting("removing files", engine.progress) as reporter:
        while rest.num_rows:
            known, rest = _looked_at_again(known, rest, found)
            batch = rest.slice(0, BATCH)
            failed += known.storage.delete(batch["location"].to_pylist())
            removed.append(batch)
            rest = rest.slice(BATCH)
            reporter.update(sum(map(len, removed)), found.files.num_rows)
    return pa.concat_tables(removed), failed


def _looked_at_again(
    known: DeltaHandle, rest: pa.Table, found: Unreferenced
) -> tuple[DeltaHandle, pa.Table]:
    """Return the newest table, and the files that no commit since then refers to."""
    newest = _refreshed(known)
    if newest.snapshot_version != known.snapshot_version:
        named = touched_files(newest, known.snapshot_version)
        rest = without(rest, newest.folder, named, follow_links=bool(found.links))
    straight = are_below_without_links(rest["location"], [newest.folder])
    return newest, rest.filter(pa.array(straight))


def _refreshed(handle: DeltaHandle) -> DeltaHandle:
    newest = handle.format.refresh(handle)
    if newest.uuid != handle.uuid:
        raise CommitConflictError(
            VERB, handle.name, "another table was created in its place meanwhile"
        )
    return cast("DeltaHandle", newest)


def _report(
    handle: DeltaHandle,
    found: Unreferenced,
    files: pa.Table,
    failures: tuple[str, ...],
    *,
    dry_run: bool = True,
) -> VacuumReport:
    return VacuumReport(
        path=tuple(files["location"].to_pylist()),
        files_count=files.num_rows,
        orphan_files_count=max(files.num_rows - found.tracked_count, 0),
        snapshot_id=handle.snapshot_version,
        dry_run=dry_run,
        skipped_folders=tuple(f"{one}: another table's" for one in found.others),
        failures=failures,
        left_foreign=found.links[:NAMED],
        left_foreign_count=len(found.links),
    )
