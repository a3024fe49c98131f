"""The list of files that a caller hands in where storage is not listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import InvalidStatementError
from rowlake.model.names import levels_of
from rowlake.query.lookup import TableLookup
from rowlake.query.run import run_query
from rowlake.sqltext.lexer import quote

if TYPE_CHECKING:
    from rowlake.workspace import Workspace


def file_list_of(workspace: Workspace, files: Any) -> pa.Table:
    """Return a list of files as columns: the name of a table or view, a DataFrame, or Arrow's."""
    if isinstance(files, str):
        name = ".".join(quote(level) for level in levels_of(files))
        files = run_query(TableLookup(workspace), f"SELECT * FROM {name}")
    if hasattr(files, "toArrow"):
        files = files.toArrow()
    if not isinstance(files, pa.Table):
        raise InvalidStatementError(
            f"file_list_view must be the name of a view, a DataFrame or an Arrow table, not "
            f"{type(files).__name__}."
        )
    return files
