"""CALL rewrite_position_delete_files, convert_equality_deletes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.sql.procedures.procedure import longs, procedure, table_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.lake import Lake
    from rowlake.sql.procedures.procedure import Procedure


def _rewrite_position_delete_files(
    lake: Lake, table: str, options: Mapping[str, str] | None, where: str | None
) -> pa.Table:
    report = table_of(lake, table).rewrite_position_delete_files(options, where)
    return pa.table(
        {
            "rewritten_delete_files_count": _int(report.rewritten_delete_files_count),
            "added_delete_files_count": _int(report.added_delete_files_count),
            "rewritten_bytes_count": pa.array([report.rewritten_bytes_count], pa.int64()),
            "added_bytes_count": pa.array([report.added_bytes_count], pa.int64()),
        }
    )


def _convert_equality_deletes(
    lake: Lake, table: str, where: str | None, options: Mapping[str, str] | None
) -> pa.Table:
    report = table_of(lake, table).convert_equality_deletes(where, options)
    counts = {
        name: _int(getattr(report, name))
        for name in (
            "converted_equality_delete_files_count",
            "removed_equality_delete_files_count",
            "added_position_delete_files_count",
        )
    }
    more = longs(rows_deleted=report.rows_deleted, data_files_read=report.data_files_read)
    return pa.table({**counts, **dict(zip(more.column_names, more.columns, strict=True))})


def _int(value: int) -> pa.Array:
    return pa.array([value], pa.int32())


PROCEDURES: dict[str, Procedure] = {
    "convert_equality_deletes": procedure(
        _convert_equality_deletes, "table", where=None, options=None
    ),
    "rewrite_position_delete_files": procedure(
        _rewrite_position_delete_files, "table", options=None, where=None
    ),
}
