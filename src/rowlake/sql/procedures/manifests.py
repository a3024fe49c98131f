"""CALL rewrite_manifests, rewrite_table_path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.sql.procedures.procedure import Procedure, procedure, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.lake import Lake


def _rewrite_manifests(
    lake: Lake,
    table: str,
    use_caching: bool | None,
    spec_id: int | None,
    sort_by: Sequence[str] | None,
) -> pa.Table:
    report = table_of(lake, table).rewrite_manifests(
        use_caching=use_caching, spec_id=spec_id, sort_by=sort_by
    )
    return pa.table(
        {
            "rewritten_manifests_count": pa.array([report.rewritten_manifests_count], pa.int32()),
            "added_manifests_count": pa.array([report.added_manifests_count], pa.int32()),
        }
    )


def _rewrite_table_path(
    lake: Lake,
    table: str,
    source_prefix: str,
    target_prefix: str,
    start_version: str | None,
    end_version: str | None,
    staging_location: str | None,
    create_file_list: bool,
) -> pa.Table:
    report = table_of(lake, table).rewrite_table_path(
        source_prefix,
        target_prefix,
        start_version=start_version,
        end_version=end_version,
        staging_location=staging_location,
        create_file_list=create_file_list,
    )
    manifests = report.rewritten_manifest_file_paths_count
    deletes = report.rewritten_delete_file_paths_count
    return pa.table(
        {
            "latest_version": pa.array([report.latest_version], pa.string()),
            "file_list_location": pa.array([report.file_list_location], pa.string()),
            "rewritten_manifest_file_paths_count": pa.array([manifests], pa.int32()),
            "rewritten_delete_file_paths_count": pa.array([deletes], pa.int32()),
        }
    )


PROCEDURES: dict[str, Procedure] = {
    "rewrite_manifests": procedure(
        _rewrite_manifests, "table", use_caching=None, spec_id=None, sort_by=None
    ),
    "rewrite_table_path": procedure(
        _rewrite_table_path,
        "table",
        "source_prefix",
        "target_prefix",
        start_version=None,
        end_version=None,
        staging_location=None,
        create_file_list=True,
    ),
}
