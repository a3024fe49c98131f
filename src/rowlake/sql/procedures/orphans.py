"""CALL remove_orphan_files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.sql.procedures.procedure import Procedure, moment, procedure, table_of

if TYPE_CHECKING:
    from rowlake.lake import Lake


def _remove_orphan_files(lake: Lake, table: str, older_than: Any, **given: Any) -> pa.Table:
    report = table_of(lake, table).remove_orphan_files(older_than=moment(lake, older_than), **given)
    return pa.table({"orphan_file_location": pa.array(report.orphan_file_location, pa.string())})


PROCEDURES: dict[str, Procedure] = {
    "remove_orphan_files": procedure(
        _remove_orphan_files,
        "table",
        older_than=None,
        location=None,
        dry_run=False,
        max_concurrent_deletes=None,
        file_list_view=None,
        equal_schemes=None,
        equal_authorities=None,
        prefix_mismatch_mode="ERROR",
        prefix_listing=False,
        stream_results=False,
        force=False,
        also_below=None,
    ),
}
