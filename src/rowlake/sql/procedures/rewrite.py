"""CALL rewrite_data_files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.sql.procedures.procedure import procedure, table_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.lake import Lake
    from rowlake.maintain.compact.rewrite import RewriteReport

_OUTPUT = pa.schema(
    [
        pa.field("rewritten_data_files_count", pa.int32()),
        pa.field("added_data_files_count", pa.int32()),
        pa.field("rewritten_bytes_count", pa.int64()),
        pa.field("failed_data_files_count", pa.int32()),
        pa.field("removed_delete_files_count", pa.int32()),
    ]
)


def rewrite_data_files(
    lake: Lake,
    table: str,
    strategy: str | None,
    sort_order: str | None,
    options: Mapping[str, Any] | None,
    where: str | None,
    branch: str | None,
) -> pa.Table:
    """Compact a table; without a strategy an order means `sort`."""
    chosen = strategy or ("sort" if sort_order else "binpack")
    report = table_of(lake, table).rewrite_data_files(
        chosen.lower(), sort_order, where, options, branch=branch or "main"
    )
    return counted(report)


def counted(report: RewriteReport) -> pa.Table:
    """Return Iceberg's output columns."""
    return pa.Table.from_pylist([report.to_dict()], _OUTPUT)


PROCEDURES = {
    "rewrite_data_files": procedure(
        rewrite_data_files,
        "table",
        strategy=None,
        sort_order=None,
        options=None,
        where=None,
        branch=None,
    )
}
