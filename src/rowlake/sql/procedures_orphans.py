"""CALL remove_orphan_files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import InvalidStatementError
from rowlake.model.names import levels_of
from rowlake.sql.lexer import quote
from rowlake.sql.procedure import Procedure, moment, procedure, table_of
from rowlake.sql.run import run_query

if TYPE_CHECKING:
    from rowlake.lake import Lake


def _remove_orphan_files(lake: Lake, table: str, older_than: Any, **given: Any) -> pa.Table:
    report = table_of(lake, table).remove_orphan_files(older_than=moment(lake, older_than), **given)
    return pa.table({"orphan_file_location": pa.array(report.orphan_file_location, pa.string())})


def file_list_of(lake: Lake, files: Any) -> pa.Table:
    """Return a list of files as columns: the name of a table or view, a DataFrame, or Arrow's."""
    if isinstance(files, str):
        name = ".".join(quote(level) for level in levels_of(files))
        files = run_query(lake, f"SELECT * FROM {name}")
    if hasattr(files, "toArrow"):
        files = files.toArrow()
    if not isinstance(files, pa.Table):
        raise InvalidStatementError(
            f"file_list_view must be the name of a view, a DataFrame or an Arrow table, not "
            f"{type(files).__name__}."
        )
    return files


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
