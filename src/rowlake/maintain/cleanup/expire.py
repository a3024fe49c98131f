"""`expire_snapshots`: expire old snapshots, then delete files that no snapshot references.

Comes in: a table handle and what to expire. Goes out: the handle after the commit and a report.

Invariants: the metadata are committed before any file goes, and read again after each lost
race; an unknown outcome removes no file; a file goes only where a snapshot that expired reached it,
no snapshot of the metadata that landed does, and it is the table's own (`storage.ownership`). What
cannot be removed, and files of others, are told, not raised. A dry run takes the same way on
metadata that are not committed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from rowlake.commit.metadata import commit_metadata
from rowlake.engine.progress import reporting
from rowlake.errors import InvalidStatementError, shown
from rowlake.maintain.cleanup.owned import except_locations, split_owned
from rowlake.maintain.guard import GC_ENABLED, check_outside_transaction, may_delete_files
from rowlake.model.expiry import Asked, Expiry
from rowlake.model.key_index import has_index
from rowlake.model.metadata_change import ExpireSnapshots
from rowlake.model.reachable import Kind, with_key_indexes
from rowlake.model.report import Report
from rowlake.storage.ownership import warn_of_foreign

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import pyarrow as pa

    from rowlake.engine.spark import Engine
    from rowlake.model.format import Payload
    from rowlake.model.handle import TableHandle
    from rowlake.model.reachable import LeftBehind

# How many files are deleted between two progress reports.
DELETED_AT_ONCE = 10_000
_COUNTS = {
    "deleted_data_files_count": Kind.DATA,
    "deleted_position_delete_files_count": Kind.POSITION_DELETES,
    "deleted_equality_delete_files_count": Kind.EQUALITY_DELETES,
    "deleted_manifest_files_count": Kind.MANIFEST,
    "deleted_manifest_lists_count": Kind.MANIFEST_LIST,
    "deleted_statistics_files_count": Kind.STATISTICS,
}


@dataclass(frozen=True)
class ExpireSnapshotsReport(Report):
    """What expired and which files went (or would go, in a dry run).

    Counts are of `deleted_files`; `failed_files` could not be deleted and are left over.
    `unread_files` are damaged metadata of expired snapshots; what only they name is left over too,
    for `remove_orphan_files`. `left_foreign` are the first of `left_foreign_count` files outside of
    the table's own folders, which are left alone. `snapshot_id` is the current snapshot.
    """

    always_shown: ClassVar[tuple[str, ...]] = (*_COUNTS, "snapshot_id")

    deleted_data_files_count: int = 0
    deleted_position_delete_files_count: int = 0
    deleted_equality_delete_files_count: int = 0
    deleted_manifest_files_count: int = 0
    deleted_manifest_lists_count: int = 0
    deleted_statistics_files_count: int = 0
    snapshot_id: int | None = None
    dry_run: bool = False
    expired_snapshot_ids: tuple[int, ...] = ()
    removed_refs: tuple[str, ...] = ()
    removed_schema_ids: tuple[int, ...] = ()
    removed_spec_ids: tuple[int, ...] = ()
    deleted_files: tuple[str, ...] = field(default=(), repr=False)
    failed_files: tuple[str, ...] = ()
    unread_files: tuple[str, ...] = ()
    left_foreign: tuple[str, ...] = ()
    left_foreign_count: int = 0
    seconds: float = 0.0


def expire_snapshots(
    handle: TableHandle,
    engine: Engine,
    *,
    older_than_ms: int | None = None,
    retain_last: int | None = None,
    max_concurrent_deletes: int | None = None,
    stream_results: bool = False,
    snapshot_ids: Iterable[int] | None = None,
    clean_expired_metadata: bool = False,
    also_below: Sequence[str] | str | None = (),
    dry_run: bool = False,
) -> tuple[TableHandle, ExpireSnapshotsReport]:
    """Expire snapshots by age and number, or by id, and delete the files that only they reached.

    Without arguments the table's `history.expire.*` say what goes: what is older than five days,
    but the last snapshot. With `stream_results` the report counts files without naming them.
    `also_below` are folders outside of the table's own whose files may be deleted too.
    """
    check_outside_transaction(handle, "expire_snapshots")
    started = time.perf_counter()
    asked = Asked(
        int(time.time() * 1000),
        older_than_ms,
        retain_last,
        frozenset(snapshot_ids or ()),
        clean_expired_metadata,
    )
    _check(handle, asked, max_concurrent_deletes)
    handle.format.ownership(handle, also_below)  # refuses before anything expires
    before, after, expiry = _dry_run(handle, asked) if dry_run else _committed(handle, asked)
    left = before.format.file_history(before, runner=engine).left_behind(after)
    split = split_owned(left.files, before.format.ownership(before, also_below))
    is_indexed = has_index(before.properties) or has_index(after.properties)
    own = with_key_indexes(split.own) if is_indexed else split.own
    left = replace(left, files=own)
    warn_of_foreign(before.name, split.named, split.foreign_count)
    failed = [] if dry_run else _delete(left.files, after, engine, max_concurrent_deletes)
    report = _report(expiry, left, failed, names=not stream_results)
    return handle if dry_run else after, replace(
        report,
        snapshot_id=after.current_snapshot_id,
        dry_run=dry_run,
        left_foreign=split.named,
        left_foreign_count=split.foreign_count,
        seconds=time.perf_counter() - started,
    )


def _check(handle: TableHandle, asked: Asked, threads: int | None) -> None:
    _check_gc(handle)
    if asked.retain_last is not None and asked.retain_last < 1:
        raise InvalidStatementError(
            f"retain_last of expire_snapshots must be at least 1, not {asked.retain_last}."
        )
    if threads is not None and threads < 1:
        raise InvalidStatementError(
            f"max_concurrent_deletes of expire_snapshots must be at least 1, not {threads}."
        )
    unknown = asked.snapshot_ids - {one.snapshot_id for one in handle.snapshots}
    if unknown:
        raise InvalidStatementError(
            f"Cannot expire {shown(sorted(unknown))}: table {handle.name} has no such snapshot. "
            f"List them with: rowlake snapshots {handle.name}."
        )


def _check_gc(handle: TableHandle) -> None:
    if not may_delete_files(handle):
        raise InvalidStatementError(
            f"Cannot expire snapshots of {handle.name}: its property {GC_ENABLED} is false, since "
            "its files may belong to other tables. Set the property first where they do not."
        )


def _dry_run(handle: TableHandle, asked: Asked) -> tuple[TableHandle, TableHandle, Expiry]:
    """Return the table as it is and as it would be, and what would go."""
    expiry = handle.format.expiry(handle, asked)
    payload = handle.format.alter(handle, ExpireSnapshots(expiry))
    after = handle if payload is None else handle.format.altered(handle, payload)
    return handle, after, expiry


def _committed(handle: TableHandle, asked: Asked) -> tuple[TableHandle, TableHandle, Expiry]:
    """Commit what expires; return the table right before and after, and what went."""
    tried: list[tuple[TableHandle, Expiry]] = []

    def make(newest: TableHandle) -> Payload | None:
        _check_gc(newest)
        expiry = newest.format.expiry(newest, asked)
        tried.append((newest, expiry))
        return newest.format.alter(newest, ExpireSnapshots(expiry))

    after = commit_metadata(handle, "expire_snapshots", make)
    before, expiry = tried[-1]
    return before, after, expiry


def _delete(files: pa.Table, handle: TableHandle, engine: Engine, threads: int | None) -> list[str]:
    """Delete files, best effort; return those that are left."""
    left: list[str] = []
    with reporting(f"deleting files of {handle.name}", engine.progress) as reporter:
        for start in range(0, files.num_rows, DELETED_AT_ONCE):
            some = files["location"].slice(start, DELETED_AT_ONCE)
            left.extend(handle.storage.delete(some.to_pylist(), threads=threads))
            reporter.update(start + len(some), files.num_rows)
    return left


def _report(
    expiry: Expiry, left: LeftBehind, failed: Collection[str], *, names: bool
) -> ExpireSnapshotsReport:
    deleted = except_locations(left.files, failed)
    return ExpireSnapshotsReport(
        **_counts(deleted),
        expired_snapshot_ids=expiry.snapshot_ids,
        removed_refs=expiry.refs,
        removed_schema_ids=expiry.schema_ids,
        removed_spec_ids=expiry.spec_ids,
        deleted_files=tuple(deleted["location"].to_pylist()) if names else (),
        failed_files=tuple(failed),
        unread_files=left.unread,
    )


def _counts(files: pa.Table) -> dict[str, Any]:
    counted = files["kind"].value_counts()
    by_kind = dict(zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True))
    return {name: by_kind.get(int(kind), 0) for name, kind in _COUNTS.items()}
