"""RESTORE TABLE: a Delta table goes back to an earlier version, in a new one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rowlake.commit.metadata import commit_metadata
from rowlake.delta.restore import Restored, RestoreTo, restore
from rowlake.delta.writable import validate_place
from rowlake.errors import InvalidStatementError
from rowlake.maintain.delta.handles import delta_handle
from rowlake.model.report import Report
from rowlake.times import to_ms

if TYPE_CHECKING:
    from rowlake.delta.handle import DeltaHandle
    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle

VERB = "RESTORE"
IGNORE_SETTING = "spark.sql.files.ignoreMissingFiles"


@dataclass(frozen=True)
class RestoreReport(Report):
    """What restoring did to files; the names are those of Delta's own result."""

    always_shown: ClassVar[tuple[str, ...]] = ("num_restored_files", "num_removed_files")

    table_size_after_restore: int = 0
    num_of_files_after_restore: int = 0
    num_removed_files: int = 0
    num_restored_files: int = 0
    removed_files_size: int = 0
    restored_files_size: int = 0
    snapshot_id: int | None = None


def restore_table(
    handle: TableHandle,
    engine: Engine,
    *,
    version: int | None = None,
    as_of: Any = None,
    ignore_missing_files: bool = False,
) -> tuple[TableHandle, RestoreReport]:
    """Make an earlier version, by its number or as of a time, the newest one.

    Commits that land in between are undone too. Raises InvalidStatementError for a version that the
    log does not have, or whose files are gone.
    """
    table = delta_handle(handle, VERB, "Use rollback_to.")
    validate_place(table)
    if (version is None) == (as_of is None):
        raise InvalidStatementError("Give version or as_of, one of them.")
    ignore = ignore_missing_files or (engine.setting(IGNORE_SETTING) or "").lower() == "true"
    to = RestoreTo(version_of(table, version, as_of), None if as_of is None else str(as_of), ignore)
    done: list[Restored | None] = []

    def make(newest: TableHandle) -> Any:
        done.append(restore(cast("DeltaHandle", newest), to))
        return None if done[-1] is None else done[-1].payload

    landed = cast("DeltaHandle", commit_metadata(handle, VERB, make))
    return landed, replace(_report(done[-1], landed), snapshot_id=landed.snapshot_version)


def version_of(handle: TableHandle, version: int | None, as_of: Any) -> int:
    """Return a version by its number, as of a time, or the newest one where neither is given."""
    table = delta_handle(handle, "A version")
    if version is not None and as_of is not None:
        raise InvalidStatementError("Give version or as_of, not both.")
    if version is None and as_of is None:
        return table.snapshot_version
    if version is None:
        return table.times.version_as_of(to_ms(as_of), table.name)
    if not isinstance(version, int) or isinstance(version, bool):
        raise InvalidStatementError(f"A version is a whole number, not {version!r}.")
    return version


def _report(done: Restored | None, table: DeltaHandle) -> RestoreReport:
    if done is None:
        files = table.state.files
        size = sum(files["size"].to_pylist())
        return RestoreReport(
            table_size_after_restore=size, num_of_files_after_restore=files.num_rows
        )
    counts = done.metrics
    return RestoreReport(
        counts["tableSizeAfterRestore"],
        counts["numOfFilesAfterRestore"],
        counts["numRemovedFiles"],
        counts["numRestoredFiles"],
        counts["removedFilesSize"],
        counts["restoredFilesSize"],
    )
