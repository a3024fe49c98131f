"""UPDATE: the rows of a condition get new values, in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.errors import UnsupportedFeatureError
from rowlake.sql.lexer import readable

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.model.result import Result
    from rowlake.sql.row_statements import Update


def update_rows(_lake: Lake, statement: Update, _arguments: Any, **_options: Any) -> Result:
    """Run an UPDATE on a table of the lake or a branch of one."""
    raise UnsupportedFeatureError(f"UPDATE on {readable(statement.name)}: not yet.")
