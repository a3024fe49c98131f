"""CALL expire_snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.sql.procedures.procedure import Procedure, longs, moment, procedure, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from rowlake.lake import Lake


def _expire_snapshots(
    lake: Lake,
    table: str,
    older_than: Any,
    retain_last: int | None,
    max_concurrent_deletes: int | None,
    stream_results: bool | None,
    snapshot_ids: Sequence[int] | None,
    clean_expired_metadata: bool | None,
    also_below: Sequence[str] | str | None,
) -> pa.Table:
    report = table_of(lake, table).expire_snapshots(
        moment(lake, older_than),
        retain_last,
        max_concurrent_deletes=max_concurrent_deletes,
        stream_results=bool(stream_results),
        snapshot_ids=snapshot_ids,
        clean_expired_metadata=bool(clean_expired_metadata),
        also_below=also_below,
    )
    return longs(
        deleted_data_files_count=report.deleted_data_files_count,
        deleted_position_delete_files_count=report.deleted_position_delete_files_count,
        deleted_equality_delete_files_count=report.deleted_equality_delete_files_count,
        deleted_manifest_files_count=report.deleted_manifest_files_count,
        deleted_manifest_lists_count=report.deleted_manifest_lists_count,
        deleted_statistics_files_count=report.deleted_statistics_files_count,
    )


PROCEDURES: dict[str, Procedure] = {
    "expire_snapshots": procedure(
        _expire_snapshots,
        "table",
        older_than=None,
        retain_last=None,
        max_concurrent_deletes=None,
        stream_results=None,
        snapshot_ids=None,
        clean_expired_metadata=None,
        also_below=None,
    ),
}
